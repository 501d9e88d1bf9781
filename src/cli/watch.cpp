// snug watch: a device's or a process's memory, live.

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ask/options.h"
#include "base/error.h"
#include "cli/command_table.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "plan/target.h"
#include "report/watch_view.h"
#include "watch/nvml.h"
#include "watch/process_use.h"

namespace snug::cli {

namespace {

using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t stopped = 0;
void stop(int signal) { stopped = signal; }

struct WatchRequest {
  std::optional<int64_t> number;  // of a process or a device
  double interval = 1;            // seconds
  int64_t count = 0;              // of looks; 0: no end
  bool json = false;
};

template <class T>
T number_of(std::string_view word, const char* what, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !(value >= least && value <= most))
    throw UsageError(fmt::format("'{}' is no {} ({} to {})", word, what, least, most));
  return value;
}

WatchRequest parse_watch(std::span<char* const> words) {
  const Options options = parse_options(words, own_flags("watch"));
  if (options.positional.size() > 1) throw UsageError("watch takes one process or one device");
  WatchRequest request{.json = options.has("json")};
  for (const std::string& word : options.positional)
    request.number = number_of<int64_t>(word, "process or device", 0, INT64_MAX);
  if (options.has("interval"))
    request.interval = number_of<double>(options.value("interval"), "number of seconds", 0.01, 86400);
  if (options.has("count")) request.count = number_of<int64_t>(options.value("count"), "number of looks", 1, INT64_MAX);
  return request;
}

// What is looked at: all devices, one, or a process.
class Watched {
 public:
  explicit Watched(const WatchRequest& request) {
    std::string reason;
    nvml_ = Nvml::open(reason);
    const int devices = nvml_ ? nvml_->devices() : 0;
    if (request.number && *request.number < devices) {
      devices_ = {static_cast<int>(*request.number)};
    } else if (request.number) {
      pid_ = *request.number;
      if (!sample_process(pid_, 0)) throw Error(fmt::format("there is no process {}", pid_), "snug watch", "see ps");
    } else {
      if (devices == 0)
        throw Error(reason.empty() ? "there is no NVIDIA GPU here" : reason, "snug watch",
                    "snug watch PID shows a process' memory");
      for (int i = 0; i < devices; ++i) devices_.push_back(i);
    }
  }

  // None once the process has ended.
  std::vector<MemorySample> look() const {
    std::vector<MemorySample> samples;
    for (const int device : devices_) samples.push_back(nvml_->sample(device));
    if (pid_ > 0)
      if (auto sample = sample_process(pid_, this_cpu(1).memory_bytes)) samples.push_back(std::move(*sample));
    return samples;
  }

 private:
  std::unique_ptr<Nvml> nvml_;
  std::vector<int> devices_;
  int64_t pid_ = 0;
};

// Shows looks one after the other: on a terminal in place, elsewhere a line each.
class WatchScreen {
 public:
  explicit WatchScreen(bool json) : json_(json), terminal_(!json && is_terminal(stdout)) {}

  void show(const std::vector<MemorySample>& samples, double seconds) {
    histories_.resize(samples.size());
    std::string text = terminal_ && lines_ > 0 ? fmt::format("\033[{}A\033[J", lines_) : std::string();
    lines_ = 0;
    for (size_t i = 0; i < samples.size(); ++i) {
      if (!terminal_) {
        text += json_ ? watch_json(samples[i], seconds) : watch_line(samples[i], seconds);
        continue;
      }
      std::deque<double>& history = histories_[i];
      history.push_back(samples[i].share());
      if (history.size() > kMostKept) history.pop_front();
      const std::string part = watch_screen(samples[i], history, style_of(stdout));
      lines_ += std::count(part.begin(), part.end(), '\n');
      text += part;
    }
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }

 private:
  static constexpr size_t kMostKept = 512;
  bool json_, terminal_;
  std::vector<std::deque<double>> histories_;
  std::ptrdiff_t lines_ = 0;
};

void wait(double seconds) {
  timespec time{.tv_sec = static_cast<time_t>(seconds), .tv_nsec = static_cast<long>((seconds - std::floor(seconds)) * 1e9)};
  nanosleep(&time, nullptr);  // a signal ends it early
}

}  // namespace

int watch_command(std::span<char* const> words) {
  const WatchRequest request = parse_watch(words);
  const Watched watched(request);
  std::signal(SIGINT, stop);
  std::signal(SIGTERM, stop);
  WatchScreen screen(request.json);
  const Clock::time_point begin = Clock::now();
  for (int64_t looks = 1; stopped == 0; ++looks) {
    const std::vector<MemorySample> samples = watched.look();
    if (samples.empty()) return 0;  // the process has ended
    screen.show(samples, std::chrono::duration<double>(Clock::now() - begin).count());
    if (looks == request.count) return 0;
    wait(request.interval);
  }
  return 128 + stopped;
}

}  // namespace snug::cli
