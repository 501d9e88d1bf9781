#include "comm/mpi_channel.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "comm/mpi/interface.h"

namespace snug {

namespace {

namespace fs = std::filesystem;

// Beside the program as it is built, or as it is installed.
const SnugMpi& open_module() {
  std::error_code none;
  const fs::path directory = fs::read_symlink("/proc/self/exe", none).parent_path();
  for (const fs::path& path : {directory / "modules" / "snug_mpi.so", directory.parent_path() / "lib/snug/snug_mpi.so"}) {
    if (!fs::exists(path, none)) continue;
    // Open MPI's own parts look for its symbols among the global ones. The module stays open as long as the process lives.
    void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (module == nullptr)
      throw Error(fmt::format("cannot be opened: {}", dlerror()), path.string(), "apt install openmpi-bin");
    using Entry = const SnugMpi* (*)();
    if (const auto entry = reinterpret_cast<Entry>(dlsym(module, "snug_mpi")); entry != nullptr) return *entry();
  }
  throw Error("ranks on several machines need MPI, and this build has none", "ranks",
              "apt install libopenmpi-dev, and build again");
}

// The run of all ranks.
class MpiRun {
 public:
  MpiRun() : mpi_(open_module()) {
    if (!mpi_.join(&rank_, &ranks_)) throw Error("MPI cannot join the run", "ranks", "start it with mpirun or srun");
  }
  MpiRun(const MpiRun&) = delete;
  MpiRun& operator=(const MpiRun&) = delete;
  // Who fails just ends: the launcher ends the others, who would wait for it.
  ~MpiRun() { mpi_.leave(!failed_ && std::uncaught_exceptions() == 0); }

  void exchange(RankGroup ring, int64_t next, std::span<const std::byte> sent, int64_t previous,
                std::span<std::byte> received) const {
    if (!mpi_.exchange(static_cast<int>(ring), next, sent.data(), static_cast<int64_t>(sent.size()), previous,
                       received.data(), static_cast<int64_t>(received.size())))
      throw lost();
  }
  bool fail() noexcept {
    failed_ = true;
    mpi_.give_up();
    return true;
  }
  int64_t rank() const { return rank_; }
  int64_t ranks() const { return ranks_; }

 private:
  RankLost lost() const {
    const int64_t rank = mpi_.lost();
    if (rank == kSnugMpiTold) return {"another rank cannot go on", "its own message says why", false};
    if (rank < 0) return {"a neighbour cannot be reached", "look for what the launcher says of it", true};
    return {fmt::format("rank {} has not been heard of for {} seconds: it, or the link to it, hangs", rank, kSnugMpiSilence),
            "start the run again with --resume-from-checkpoint: the last checkpoint is whole", true};
  }

  const SnugMpi& mpi_;
  int64_t rank_ = 0, ranks_ = 1;
  std::atomic<bool> failed_ = false;
};

class MpiChannel final : public Channel {
 public:
  MpiChannel(std::shared_ptr<MpiRun> run, const RankMesh& mesh, RankGroup group)
      : run_(std::move(run)), mesh_(mesh), group_(group) {}

  int64_t rank() const override { return mesh_.index(group_, run_->rank()); }
  int64_t ranks() const override { return mesh_.size(group_); }
  void exchange(std::span<const std::byte> to_next, std::span<std::byte> from_previous) override {
    run_->exchange(group_, mesh_.next(group_, run_->rank()), to_next, mesh_.previous(group_, run_->rank()), from_previous);
  }
  bool fail() noexcept override { return run_->fail(); }

 private:
  std::shared_ptr<MpiRun> run_;
  RankMesh mesh_;
  RankGroup group_;
};

}  // namespace

std::unique_ptr<Channel> make_mpi_channel(const RankMesh& mesh, RankGroup group) {
  static std::weak_ptr<MpiRun> joined;  // MPI knows one run in a process
  std::shared_ptr<MpiRun> run = joined.lock();
  if (run == nullptr) joined = run = std::make_shared<MpiRun>();
  if (run->ranks() != mesh.ranks)
    throw Error(fmt::format("MPI started {} ranks of {}", run->ranks(), mesh.ranks), "ranks", "start all of them together");
  return std::make_unique<MpiChannel>(std::move(run), mesh, group);
}

}  // namespace snug
