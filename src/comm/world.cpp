#include "comm/world.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "comm/local/shared_memory.h"
#include "comm/mpi_channel.h"

namespace snug {

namespace {

namespace fs = std::filesystem;

constexpr const char *kRank = "SNUG_RANK", *kRanks = "SNUG_RANKS", *kShared = "SNUG_RANKS_FD";
constexpr std::chrono::seconds kPatience(30);
constexpr std::chrono::milliseconds kBetween(20);

std::string text_of(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<int64_t> number_of(const char* name) {
  const std::string text = text_of(name);
  if (text.empty()) return std::nullopt;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    throw Error(fmt::format("{}={} is no number of a process", name, text.substr(0, 40)), "environment",
                "start the run with its launcher, or unset it");
  return number;
}

// A launcher's variables. `job`: those that together name the run.
struct Launcher {
  const char *name, *rank, *ranks, *local_ranks;
  std::initializer_list<const char*> job;
};

constexpr const char *kMpirun = "mpirun", *kSrun = "srun";
constexpr const char* kOmpiJob = "OMPI_MCA_ess_base_jobid";
const Launcher kLaunchers[] = {
    {kOwnLauncher, kRank, kRanks, kRanks, {}},
    {kMpirun, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", {kOmpiJob, "PMIX_NAMESPACE"}},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", {"TORCHELASTIC_RUN_ID", "MASTER_PORT"}},
    {kSrun, "SLURM_PROCID", "SLURM_NTASKS", nullptr, {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

// A step of several machines says how many tasks each has, as "4(x2),3". 0: it does not say.
int64_t slurm_local_ranks(int64_t ranks) {
  if (number_of("SLURM_NNODES").value_or(1) == 1) return ranks;
  const std::string text = text_of("SLURM_STEP_TASKS_PER_NODE");
  int64_t machine = number_of("SLURM_NODEID").value_or(0);
  const char *at = text.data(), *const end = at + text.size();
  const auto number = [&] {
    int64_t value = 0;
    const auto [behind, error] = std::from_chars(at, end, value);
    at = error == std::errc() ? behind : end;
    return value;
  };
  while (at < end) {
    const int64_t tasks = number();
    int64_t machines = 1;
    if (end - at > 2 && at[0] == '(' && at[1] == 'x') {
      at += 2;
      machines = number();
      if (at < end) ++at;
    }
    if (machine < machines) return tasks;
    machine -= machines;
    if (at < end) ++at;
  }
  return 0;
}

// srun sets these for what is not a step of several tasks, too: without a step there is no launch.
bool is_launched(const Launcher& launcher) {
  if (launcher.local_ranks == nullptr && text_of("SLURM_STEP_ID").empty()) return false;
  return !text_of(launcher.rank).empty() && !text_of(launcher.ranks).empty();
}

fs::path meeting_place(const World& world) {
  std::string name = fmt::format("snug-{}-{}-{}", getuid(), world.launcher, world.job);
  for (char& c : name)
    if (c == '/' || c == '\0') c = '_';
  return fs::path("/dev/shm") / name.substr(0, 200);
}

template <class Try>
void until_there(const World& world, const Try& attempt) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!attempt()) {
    if (std::chrono::steady_clock::now() > end)
      throw Error(fmt::format("rank {} of {} waited {} seconds for the others", world.rank, world.ranks, kPatience.count()),
                  "ranks", "start as many processes as " + world.launcher + " says there are, on one machine");
    std::this_thread::sleep_for(kBetween);
  }
}

std::unique_ptr<RankRings> rings_in(int fd, const World& world, const RankMesh& mesh) {
  auto rings = std::make_unique<RankRings>(mesh, world.rank,
                                           [&](RankGroup group) { return open_shared_memory(fd, mesh, group, world.rank); });
  rings->all().barrier();
  return rings;
}

// The first rank makes the file, under another name until it is of its size; the name goes when all have come.
std::unique_ptr<RankRings> meet_at(const fs::path& place, const World& world, const RankMesh& mesh) {
  const bool first = world.rank == 0;
  UniqueFd fd;
  if (first) {
    const fs::path made = place.string() + ".new";
    ::unlink(place.c_str());
    ::unlink(made.c_str());
    fd = UniqueFd(open(made.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd || ftruncate(fd.get(), shared_bytes(world.ranks)) != 0)
      throw_errno("memory for ranks to share cannot be made", made, errno);
    rename_path(made, place);
  } else {
    until_there(world, [&] {
      fd = UniqueFd(open(place.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
      struct stat status {};
      return fd && fstat(fd.get(), &status) == 0 && status.st_size == shared_bytes(world.ranks) &&
             status.st_uid == geteuid();
    });
  }
  // The name goes whether they meet or not.
  const auto forget = [](const char* name) { ::unlink(name); };
  const std::unique_ptr<const char, decltype(forget)> name(first ? place.c_str() : nullptr, forget);
  return rings_in(fd.get(), world, mesh);
}

}  // namespace

std::optional<World> launched_world() {
  for (const Launcher& launcher : kLaunchers) {
    if (!is_launched(launcher)) continue;
    World world{.rank = *number_of(launcher.rank), .ranks = *number_of(launcher.ranks), .launcher = launcher.name};
    if (world.rank >= world.ranks)
      throw Error(fmt::format("{}={} of {}={} processes", launcher.rank, world.rank, launcher.ranks, world.ranks),
                  "environment", "start the run with its launcher, or unset both");
    world.local_ranks = launcher.local_ranks == nullptr ? slurm_local_ranks(world.ranks)
                                                        : number_of(launcher.local_ranks).value_or(world.ranks);
    for (const char* const part : launcher.job) world.job += "-" + text_of(part);
    return world;
  }
  return std::nullopt;
}

bool World::over_mpi() const { return local_ranks != ranks && (launcher == kMpirun || launcher == kSrun); }

std::unique_ptr<RankRings> meet(const World& world, const RankMesh& mesh) {
  if (world.over_mpi())
    return std::make_unique<RankRings>(mesh, world.rank, [&](RankGroup group) { return make_mpi_channel(mesh, group); });
  if (world.local_ranks != world.ranks)
    throw Error(fmt::format("{} of {} processes are on this machine", world.local_ranks, world.ranks), "ranks",
                "start those of several machines with mpirun or srun");
  if (world.ranks > kMostLocalRanks)
    throw Error(fmt::format("{} processes on one machine", world.ranks), "ranks",
                fmt::format("start at most {}", kMostLocalRanks));
  if (const std::optional<int64_t> fd = number_of(kShared); fd && world.launcher == kOwnLauncher) {
    const UniqueFd shared(static_cast<int>(*fd));
    return rings_in(shared.get(), world, mesh);
  }
  return meet_at(meeting_place(world), world, mesh);
}

OwnLaunch::OwnLaunch(int64_t ranks) : ranks_(ranks), shared_(make_shared_memory(ranks)) {}

void OwnLaunch::set_environment(int64_t rank) const {
  setenv(kRank, std::to_string(rank).c_str(), 1);
  setenv(kRanks, std::to_string(ranks_).c_str(), 1);
  setenv(kShared, std::to_string(shared_.get()).c_str(), 1);
}

}  // namespace snug
