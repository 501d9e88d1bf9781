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

class MpiChannel final : public Channel {
 public:
  MpiChannel() : mpi_(open_module()) {
    if (!mpi_.join(&rank_, &ranks_)) throw Error("MPI cannot join the run", "ranks", "start it with mpirun or srun");
  }
  MpiChannel(const MpiChannel&) = delete;
  MpiChannel& operator=(const MpiChannel&) = delete;
  // Who fails just ends: the launcher ends the others, who would wait for it.
  ~MpiChannel() override {
    if (!failed_ && std::uncaught_exceptions() == 0) mpi_.leave();
  }

  int64_t rank() const override { return rank_; }
  int64_t ranks() const override { return ranks_; }

  void exchange(std::span<const std::byte> to_next, std::span<std::byte> from_previous) override {
    const bool well =
        mpi_.exchange((rank_ + 1) % ranks_, to_next.data(), static_cast<int64_t>(to_next.size()),
                      (rank_ + ranks_ - 1) % ranks_, from_previous.data(), static_cast<int64_t>(from_previous.size()));
    if (!well) throw RankLost("a neighbour cannot be reached", "look for what the launcher says of it", true);
  }

  void fail() noexcept override {
    failed_ = true;
    mpi_.give_up();
  }

 private:
  const SnugMpi& mpi_;
  int64_t rank_ = 0, ranks_ = 1;
  std::atomic<bool> failed_ = false;
};

}  // namespace

std::unique_ptr<Channel> make_mpi_channel() { return std::make_unique<MpiChannel>(); }

}  // namespace snug
