#include "cli/support_injection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <sstream>

#include "cli/inject_failures.h"
#include "cli/support_workspace.h"

namespace snug::cli_tests {

namespace fs = std::filesystem;

namespace {

// Users know a file by its own name, not by the one under which it is prepared.
std::string public_name(const fs::path& path) {
  std::string name = path.string();
  constexpr std::string_view kNameless = " (deleted)";  // as the system calls a file that is open and has no name any more
  if (name.ends_with(kNameless)) name.resize(name.size() - kNameless.size());
  const size_t mark = name.rfind(".tmp-");
  return mark == std::string::npos || name.find('/', mark) != std::string::npos ? name : name.substr(0, mark);
}

std::vector<int64_t> ends_of_files(const Seen& seen) {
  std::map<uint32_t, std::pair<int64_t, int64_t>> ends;
  const int64_t known = std::min(seen.calls, static_cast<int64_t>(seen.file_of_call.size()));
  for (int64_t call = 1; call <= known; ++call)
    ends.try_emplace(seen.file_of_call[static_cast<size_t>(call - 1)], call, call).first->second.second = call;
  std::vector<int64_t> list;
  for (const auto& [file, pair] : ends) list.insert(list.end(), {pair.first, pair.second});
  return list;
}

}  // namespace

Injected run_injected(const std::vector<std::string>& arguments, const Injection& injection, const fs::path& scratch) {
  const fs::path file = scratch / "seen";
  fs::remove(file);
  ProcessOptions options;
  options.environment = {{"LD_PRELOAD", SNUG_INJECT_FAILURES},
                         {"SNUG_INJECT", fmt::format("{} {} {}{}", injection.calls, injection.how, injection.at,
                                                     injection.and_later ? "+" : "")},
                         {"SNUG_INJECT_BELOW", injection.below.string()},
                         {"SNUG_INJECT_SECONDS", std::to_string(injection.seconds)},
                         {"SNUG_INJECT_SEEN", file.string()}};
  Injected run{.result = run_program(arguments, options)};
  Seen seen;
  const std::string bytes = contents(file);
  if (bytes.size() != sizeof seen) return run;
  std::memcpy(&seen, bytes.data(), sizeof seen);
  run.calls = seen.calls;
  run.injected = seen.injected;
  run.path = seen.path.data();
  run.ends = ends_of_files(seen);
  return run;
}

std::string fault_of(const ProcessResult& refused, const fs::path& path) {
  if (refused.exit_code != 1) return fmt::format("exit code {}, signal {}", refused.exit_code, refused.signal);
  std::istringstream text(refused.error);
  int told = 0;
  std::string last;
  for (std::string line; std::getline(text, line); last = line) told += line.starts_with("snug: ") ? 1 : 0;
  if (told != 1) return fmt::format("{} lines start with 'snug: '", told);
  if (!last.starts_with("snug: ")) return "the last line is another";
  if (last.find(public_name(path)) == std::string::npos) return "does not name " + public_name(path);
  if (!last.ends_with(')') || last.find(" (") == std::string::npos) return "does not say what to do";
  return "";
}

}  // namespace snug::cli_tests
