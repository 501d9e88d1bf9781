#include "comm/local/shared_memory.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include "base/error.h"
#include "formats/file.h"

namespace snug {

namespace {

constexpr size_t kSlots = 2, kSlotBytes = size_t{128} << 10, kPage = 4096;

// What a rank receives from the one before. Counters run on; a slot is theirs modulo kSlots.
struct Mailbox {
  std::atomic<uint32_t> bell;           // rung for its rank: something came, or a slot of the next rank's is free
  std::atomic<uint32_t> sleeps;         // its rank waits for the bell, or is about to
  std::atomic<uint32_t> filled, taken;  // slots
  std::atomic<int32_t> process;         // of the rank; 0: not here yet, kLeft: it has left in order
  std::atomic<int32_t> failed;          // in the first rank's: 1 + the rank that cannot go on
  std::array<uint32_t, kSlots> sizes;
};
static_assert(sizeof(Mailbox) <= kPage && std::atomic<uint32_t>::is_always_lock_free);

constexpr int32_t kLeft = -1;
constexpr std::chrono::seconds kArrival(30);  // all must have come by then
constexpr int kTurns = 30;        // for others, before one sleeps: to be woken takes longer than most of what is waited for
constexpr int kNapsPerLook = 10;  // at whether the others run
constexpr int kMostLooks = 15;    // at one that is stopped: a second each

constexpr size_t kBoxBytes = kPage + kSlots * kSlotBytes;

// Returns when the bell was rung after it stood at `seen`; false: nobody rang for a while. Who rings sees `sleeps` or has
// moved the bell on before the kernel looks at it. Not the private kind: other processes wait on the same page.
bool wait_at(Mailbox& box, uint32_t seen) {
  constexpr timespec kNap{.tv_sec = 0, .tv_nsec = 100'000'000};
  box.sleeps.store(1);
  const long woken = syscall(SYS_futex, reinterpret_cast<uint32_t*>(&box.bell), FUTEX_WAIT, seen, &kNap, nullptr, 0);
  const bool rung = woken == 0 || errno != ETIMEDOUT;
  box.sleeps.store(0);
  return rung;
}

void ring(Mailbox& box) {
  box.bell.fetch_add(1);
  if (box.sleeps.load() == 0) return;
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&box.bell), FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

// Whether a signal keeps the process from running ("T" in /proc/PID/stat, behind its name). Who debugs it ("t") is waited
// for.
bool is_stopped(int32_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  const size_t state = text.rfind(')') + 2;  // 1 where there is no such process
  return state > 1 && state < text.size() && text[state] == 'T';
}

class MailboxChannel final : public Channel {
 public:
  MailboxChannel(std::span<std::byte> shared, const RankMesh& mesh, RankGroup group, int64_t rank)
      : shared_(shared),
        mesh_(mesh),
        group_(group),
        own_(rank),
        next_(mesh.next(group, rank)),
        previous_(mesh.previous(group, rank)) {
    if (group == RankGroup::all) box(RankGroup::all, rank).process = static_cast<int32_t>(getpid());
  }

  MailboxChannel(const MailboxChannel&) = delete;
  MailboxChannel& operator=(const MailboxChannel&) = delete;
  ~MailboxChannel() override {
    if (group_ == RankGroup::all) box(RankGroup::all, own_).process = kLeft;  // and is not missed
  }

  int64_t rank() const override { return mesh_.index(group_, own_); }
  int64_t ranks() const override { return mesh_.size(group_); }

  void exchange(std::span<const std::byte> to_next, std::span<std::byte> from_previous) override {
    Mailbox &own = box(group_, own_), &next = box(group_, next_);
    const auto move_some = [&] { return send_some(next, to_next) + receive_some(own, from_previous) > 0; };
    StoppedRank stopped;
    int naps = 0, turns = 0;
    bool rung = true;
    while (!to_next.empty() || !from_previous.empty()) {
      const uint32_t seen = own.bell.load();
      if (move_some()) {
        turns = 0;
        continue;
      }
      if (turns++ < kTurns) {
        std::this_thread::yield();
        continue;
      }
      if (const std::optional<Lost> lost = rung ? failed_rank() : lost_rank()) {
        if (move_some()) continue;  // what it had sent before counts
        tell(*lost);
      }
      if (!rung && ++naps % kNapsPerLook == 0) look_for_stopped(stopped);
      rung = wait_at(own, seen);
    }
  }

  bool fail() noexcept override { return claim_failure(); }

 private:
  // Whether this rank is the first to say so, now or before.
  bool claim_failure() const noexcept {
    int32_t none = 0;
    const bool first = box(RankGroup::all, 0).failed.compare_exchange_strong(none, static_cast<int32_t>(own_) + 1);
    for (int ring_of = 0; ring_of < kRankGroupCount; ++ring_of)
      for (int64_t other = 0; other < mesh_.ranks; ++other) ring(box(static_cast<RankGroup>(ring_of), other));
    return first || none == static_cast<int32_t>(own_) + 1;
  }

  std::byte* box_bytes(RankGroup group, int64_t of) const {
    return shared_.data() + static_cast<size_t>(static_cast<int64_t>(group) * mesh_.ranks + of) * kBoxBytes;
  }
  Mailbox& box(RankGroup group, int64_t of) const { return *std::launder(reinterpret_cast<Mailbox*>(box_bytes(group, of))); }
  std::byte* slot(int64_t of, uint32_t count) const { return box_bytes(group_, of) + kPage + count % kSlots * kSlotBytes; }

  // Bytes that found a free slot; what is left stays in `bytes`.
  size_t send_some(Mailbox& next, std::span<const std::byte>& bytes) const {
    const uint32_t filled = next.filled.load(std::memory_order_relaxed);
    if (bytes.empty() || filled - next.taken.load() == kSlots) return 0;
    const size_t size = std::min(bytes.size(), kSlotBytes);
    std::memcpy(slot(next_, filled), bytes.data(), size);
    next.sizes[filled % kSlots] = static_cast<uint32_t>(size);
    next.filled.store(filled + 1);
    ring(next);
    bytes = bytes.subspan(size);
    return size;
  }

  size_t receive_some(Mailbox& own, std::span<std::byte>& bytes) const {
    const uint32_t taken = own.taken.load(std::memory_order_relaxed);
    if (bytes.empty() || own.filled.load(std::memory_order_acquire) == taken) return 0;
    const size_t size = own.sizes[taken % kSlots];
    if (size != std::min(bytes.size(), kSlotBytes))
      throw Error(
          fmt::format("rank {} was sent {} bytes where it waits for {}", own_, size, std::min(bytes.size(), kSlotBytes)),
          "ranks", "give all ranks the same files, recipe and version of snug");
    std::memcpy(bytes.data(), slot(own_, taken), size);
    own.taken.store(taken + 1);
    if (own.filled.load() - taken == kSlots) ring(box(group_, previous_));  // who may have found no free slot
    bytes = bytes.subspan(size);
    return size;
  }

  // One that does not run, and how often it was seen so. Looks are counted, not seconds: who is stopped with the others
  // and goes on with them has not looked meanwhile.
  struct StoppedRank {
    int64_t rank = 0;
    int looks = 0;
  };

  void look_for_stopped(StoppedRank& seen) const {
    int64_t stopped = 0;
    while (stopped < mesh_.ranks && !is_stopped(box(RankGroup::all, stopped).process.load())) ++stopped;
    const bool same = seen.looks > 0 && seen.rank == stopped;
    seen = {.rank = stopped, .looks = stopped == mesh_.ranks ? 0 : same ? seen.looks + 1 : 1};
    if (seen.looks < kMostLooks) return;
    const int32_t process = box(RankGroup::all, stopped).process.load();
    throw RankLost(
        fmt::format("rank {} (process {}) is stopped and has not gone on for {} seconds", stopped, process, kMostLooks),
        "start the run again with --resume-from-checkpoint: the last checkpoint is whole", claim_failure());
  }

  struct Lost {
    int64_t rank = 0;
    int32_t process = 0;  // that is gone; 0: the rank says that it cannot go on, or has not come
    bool absent = false;
  };

  std::optional<Lost> failed_rank() const {
    const int32_t failed = box(RankGroup::all, 0).failed.load();
    return failed != 0 ? std::optional(Lost{.rank = failed - 1}) : std::nullopt;
  }

  std::optional<Lost> lost_rank() const {
    if (const auto failed = failed_rank()) return failed;
    for (int64_t other = 0; other < mesh_.ranks; ++other) {
      const int32_t process = box(RankGroup::all, other).process.load();
      const auto has_left = [&] { return box(RankGroup::all, other).process.load() != process; };  // in order, meanwhile
      if (process > 0 && kill(process, 0) != 0 && errno == ESRCH && !has_left()) return Lost{other, process};
      if (process == 0 && std::chrono::steady_clock::now() - made_ > kArrival) return Lost{.rank = other, .absent = true};
    }
    return std::nullopt;
  }

  [[noreturn]] void tell(const Lost& lost) const {
    if (lost.absent)
      throw RankLost(fmt::format("rank {} has not come within {} seconds", lost.rank, kArrival.count()),
                     "its own message says why; else start all of them together", claim_failure());
    if (lost.process == 0) throw RankLost(fmt::format("rank {} cannot go on", lost.rank), "its own message says why", false);
    throw RankLost(fmt::format("rank {} (process {}) is gone", lost.rank, lost.process),
                   "start the run again with --resume-from-checkpoint: the last checkpoint is whole", claim_failure());
  }

  std::span<std::byte> shared_;
  RankMesh mesh_;
  RankGroup group_;
  int64_t own_, next_, previous_;  // ranks
  std::chrono::steady_clock::time_point made_ = std::chrono::steady_clock::now();
};

// The channel with the mapping it lies in.
class MappedChannel final : public Channel {
 public:
  MappedChannel(int fd, const RankMesh& mesh, RankGroup group, int64_t rank)
      : mapping_(map(fd, mesh.ranks)),
        channel_(make_mailbox_channel({mapping_.get(), size_of(mesh.ranks)}, mesh, group, rank)) {}

  int64_t rank() const override { return channel_->rank(); }
  int64_t ranks() const override { return channel_->ranks(); }
  void exchange(std::span<const std::byte> to_next, std::span<std::byte> from_previous) override {
    channel_->exchange(to_next, from_previous);
  }
  bool fail() noexcept override { return channel_->fail(); }

 private:
  struct Unmap {
    size_t bytes = 0;
    void operator()(std::byte* data) const { munmap(data, bytes); }
  };
  using Mapping = std::unique_ptr<std::byte, Unmap>;

  static size_t size_of(int64_t ranks) { return static_cast<size_t>(shared_bytes(ranks)); }

  static Mapping map(int fd, int64_t ranks) {
    struct stat status {};
    if (fstat(fd, &status) != 0 || status.st_size != shared_bytes(ranks))
      throw Error("the memory that ranks share is of another size", "ranks", "start all of them together");
    void* const data = mmap(nullptr, size_of(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) throw_errno("the memory that ranks share cannot be mapped", "ranks", errno);
    return {static_cast<std::byte*>(data), Unmap{size_of(ranks)}};
  }

  Mapping mapping_;
  std::unique_ptr<Channel> channel_;
};

}  // namespace

int64_t shared_bytes(int64_t ranks) { return kRankGroupCount * ranks * static_cast<int64_t>(kBoxBytes); }

std::unique_ptr<Channel> make_mailbox_channel(std::span<std::byte> shared, const RankMesh& mesh, RankGroup group,
                                              int64_t rank) {
  return std::make_unique<MailboxChannel>(shared, mesh, group, rank);
}

UniqueFd make_shared_memory(int64_t ranks) {
  UniqueFd fd(memfd_create("snug-ranks", 0));  // inherited by the ranks
  if (fd.get() < 0 || ftruncate(fd.get(), shared_bytes(ranks)) != 0)
    throw_errno("memory for ranks to share cannot be made", "ranks", errno);
  return fd;
}

std::unique_ptr<Channel> open_shared_memory(int fd, const RankMesh& mesh, RankGroup group, int64_t rank) {
  return std::make_unique<MappedChannel>(fd, mesh, group, rank);
}

}  // namespace snug
