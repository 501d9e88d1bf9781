#include "cli/support_disturbed.h"

#include <signal.h>
#include <unistd.h>

#include <stdexcept>

namespace snug::cli_tests {

namespace fs = std::filesystem;

namespace {

bool same_file(const fs::path& a, const fs::path& b) { return fs::exists(a) && fs::exists(b) && contents(a) == contents(b); }

// In memory where that is possible: hundreds of runs would each wait for the disk.
fs::path quick_place() {
  const char* memory = "/dev/shm";
  return ::access(memory, W_OK | X_OK) == 0 ? memory : fs::temp_directory_path();
}

}  // namespace

Disturbed::Disturbed(const std::string& method) : method_(method), work_(Json::object(), quick_place()) {
  const ProcessResult whole = run_program(words(truth(), {}));
  if (whole.exit_code != 0) throw std::runtime_error(whole.error);
  const Injection last{.calls = "mkdir", .how = "kill", .at = 1, .below = before() / "checkpoint-6"};
  const Injected killed = run_injected(words(before(), {}), last, work_.path());
  if (killed.result.signal != SIGKILL) throw std::runtime_error("was not killed: " + killed.result.error);
  restore();
}

void Disturbed::restore() const {
  fs::remove_all(out());
  fs::copy(before(), out(), fs::copy_options::recursive);
}

std::vector<std::string> Disturbed::words(const fs::path& output, const std::vector<std::string>& more) const {
  std::vector<std::string> keys = {"--method", method_, "--optim", "adamw_torch"};
  if (method_ == "paged")  // all that is trained
    keys = {"--method", "full", "--optim", "paged_adamw_32bit", "--offload-weights", "disk", "--offload-gradients", "disk"};
  if (method_ == "away")  // all that can be
    keys = {"--method",          "lora", "--optim", "paged_adamw_32bit", "--offload-activations", "disk",
            "--offload-weights", "disk"};
  keys = joined(keys, {"--seq", "64", "--batch", "2", "--max-steps", "6", "--save-steps", "2", "--lr", "1e-3",
                       "--eval-on-start", "--eval-data", work_.data().string()});
  return work_.train(output, joined(keys, more));
}

ProcessResult Disturbed::run(const std::vector<std::string>& more) const { return run_program(words(out(), more)); }

Injected Disturbed::run(const std::vector<std::string>& more, const Injection& injection) const {
  return run_injected(words(out(), more), injection, work_.path());
}

std::string Disturbed::difference() const {
  if (const std::vector<std::string> drafts = unfinished(out()); !drafts.empty()) return drafts.front();
  for (const auto& entry : fs::recursive_directory_iterator(truth())) {
    const fs::path path = fs::relative(entry.path(), truth());
    // The model card tells measured figures, as the metrics do.
    const bool measured = path == "metrics.jsonl" || path == "README.md";
    if (measured && !fs::exists(out() / path)) return path.string();
    if (entry.is_regular_file() && !measured && !same_file(entry.path(), out() / path)) return path.string();
  }
  return step_lines(out()) == step_lines(truth()) ? "" : "metrics.jsonl";
}

std::string Disturbed::damage() const {
  for (const char* name : {"checkpoint-2", "checkpoint-4"})
    for (const auto& entry : fs::directory_iterator(before() / name))
      if (const fs::path file = out() / name / entry.path().filename(); !same_file(entry.path(), file)) return file.string();
  return "";
}

}  // namespace snug::cli_tests
