// read_snapshot FILE: reads a memory snapshot, finds the peak of its first trace and what lies there, and prints what that
// took.

#include <chrono>
#include <fstream>
#include <iostream>
#include <string>

#include "base/error.h"
#include "torch/replay.h"
#include "torch/snapshot.h"

namespace {

std::string highest_rss() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return line.substr(6);
  return "unknown";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: read_snapshot FILE\n";
    return 2;
  }
  try {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const snug::Snapshot snapshot = snug::read_snapshot(std::filesystem::path(argv[1]));
    const auto read = Clock::now();
    const auto seconds = [](Clock::duration time) { return std::chrono::duration<double>(time).count(); };
    const std::string after_reading = highest_rss();
    const snug::Peak peak = snug::peak_of(snapshot, 0);
    snug::Replay replay(snapshot, 0);
    replay.advance_to(peak.position);
    const size_t stacks = snug::live_by_stack(replay).size();
    std::cout << snapshot.events.size() << " events, " << snapshot.segments.size() << " segments, " << snapshot.stacks.size()
              << " stack nodes; read in " << seconds(read - start) << " s, VmHWM" << after_reading << "; peak "
              << peak.totals.allocated_bytes << " bytes by " << stacks << " stacks, replayed in "
              << seconds(Clock::now() - read) << " s, VmHWM" << highest_rss() << '\n';
    return 0;
  } catch (const snug::Error& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}
