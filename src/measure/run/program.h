#pragma once
// Runs a PyTorch program on the null device and collects what each of its processes measured: the library and the Python
// side, which this program carries, are written into a directory of their own, the environment is set, the program is
// started and waited for. Prints nothing and judges nothing.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace snug {

// What each of the devices pretends to be.
struct NullDevice {
  std::string name;
  int64_t memory_bytes = 0;   // that one process can have of an idle card
  int64_t context_bytes = 0;  // of these, what its context takes
  int32_t compute_capability = 80;
  int32_t multiprocessors = 108;
  int32_t count = 1;
};

struct MeasureRequest {
  NullDevice device;
  bool synthetic = false;            // models, tokenizers and rows that are not there are stood in for
  int64_t steps = 0;                 // the program is ended after so many steps of its optimizer; 0: it ends itself
  std::filesystem::path snapshot;    // PyTorch's, if memory runs out; empty: among the run's own files
  std::vector<std::string> changes;  // words of advice to follow: "gradient_checkpointing" (python/snug_measure/changes.py)
  std::vector<std::string> command;
};

struct MeasuredPeak {
  int64_t allocated_bytes = 0, reserved_bytes = 0;
};

struct OutOfMemory {
  std::string phase;
  int64_t asked_bytes = 0, free_bytes = 0;
  std::filesystem::path snapshot;  // empty: none was written
};

// One process that used a device.
struct MeasuredRank {
  int64_t rank = 0;
  MeasuredPeak peak;
  std::string phase;                    // of the peak
  int64_t driver_bytes = 0;             // most that the driver gave: what PyTorch reserved, and what others took beside it
  std::optional<int64_t> steady_bytes;  // allocated between steps
  int64_t pinned_bytes = 0, managed_bytes = 0, host_peak_bytes = 0;
  double seconds = 0;
  std::vector<std::pair<std::string, MeasuredPeak>> phases;  // in the order of time
  std::vector<MeasuredPeak> steps;
  std::map<std::string, std::string> versions;
  std::vector<std::string> refused;  // functions of CUDA that the null device does not have
  std::optional<OutOfMemory> out_of_memory;
};

// The files of a run; they go with it.
class RunDirectory {
 public:
  RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;
  ~RunDirectory();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct Measurement {
  int exit_code = 0;                 // the program's; 128 and the signal that ended it
  std::vector<MeasuredRank> ranks;   // by rank
  std::vector<std::string> changed;  // of the request's changes those that the program had an argument for
};

// Throws Error if the program cannot be started.
Measurement measure(const MeasureRequest& request, const RunDirectory& directory);

}  // namespace snug
