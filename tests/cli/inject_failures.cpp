// A library to preload under `snug train`: lets chosen calls on chosen files fail as a disk, a signal or a clock may.
//
//   SNUG_INJECT        "CALLS HOW AT"
//                      CALLS: one or more of open,read,write,sync,rename,mkdir,remove,stat,list,clock,ring
//                      HOW:   an errno's number; or `short`: half of what was asked for; `interrupt`: EINTR, then the call;
//                             `kill`: SIGKILL to the process; `full`: writes beyond AT bytes meet ENOSPC;
//                             `jump` for the clock: SNUG_INJECT_SECONDS are added from then on
//                      AT:    which call, from 1; "3+": it and all later ones
//   SNUG_INJECT_BELOW  only on paths that start so
//   SNUG_INJECT_SEEN   a file for what was seen, shared by the processes of a run: inject_failures.h
//
// Nothing here may allocate.

#include "cli/inject_failures.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <liburing.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>

namespace {

using snug::cli_tests::Seen;

struct Settings {
  std::array<char, 64> calls{}, how{};
  int64_t at = 0, seconds = 0;
  bool and_later = false;
  std::string_view below;
  Seen* seen = nullptr;

  Settings() {
    const char* text = std::getenv("SNUG_INJECT");
    const char* file = std::getenv("SNUG_INJECT_SEEN");
    const char* prefix = std::getenv("SNUG_INJECT_BELOW");
    const char* jump = std::getenv("SNUG_INJECT_SECONDS");
    long long number = 0;
    char plus = 0;
    if (text == nullptr || file == nullptr || prefix == nullptr) return;
    const int fields = std::sscanf(text, "%63s %63s %lld%c", calls.data(), how.data(), &number, &plus);
    // The system call itself: `open` is this library's own.
    const int fd = static_cast<int>(syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (fields < 3 || fd < 0 || ftruncate(fd, sizeof(Seen)) != 0) std::abort();
    void* shared = mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (shared == MAP_FAILED) std::abort();
    at = number;
    and_later = plus == '+';
    seconds = jump == nullptr ? 0 : std::atoll(jump);
    below = prefix;
    seen = static_cast<Seen*>(shared);
  }

  bool is(std::string_view name) const { return name == how.data(); }
  bool hits(int64_t call) const { return and_later ? call >= at : call == at; }
};

const Settings& settings() {
  static const Settings once;
  return once;
}

bool concerns(const char* call, std::string_view path) {
  const Settings& s = settings();
  return s.seen != nullptr && std::strstr(s.calls.data(), call) != nullptr && path.starts_with(s.below);
}

void remember(std::string_view path) {
  Seen& seen = *settings().seen;
  if (++seen.injected > 1) return;
  const size_t count = std::min(path.size(), seen.path.size() - 1);
  std::copy_n(path.begin(), count, seen.path.begin());
  seen.path[count] = '\0';
}

int64_t next_count() { return std::atomic_ref(settings().seen->calls).fetch_add(1) + 1; }

// True, with errno, if this call is to fail. `path` may be empty: none of ours.
bool fails(const char* call, std::string_view path) {
  if (!concerns(call, path)) return false;
  const Settings& s = settings();
  if (s.is("short") || s.is("full")) return false;
  const int64_t count = next_count();
  if (const auto index = static_cast<size_t>(count - 1); index < s.seen->file_of_call.size())
    s.seen->file_of_call[index] = static_cast<uint32_t>(std::hash<std::string_view>{}(path));
  if (s.is("interrupt")) {
    if (count % 2 == 0) return false;  // the second try
    remember(path);
    errno = EINTR;
    return true;
  }
  if (!s.hits(count)) return false;
  remember(path);
  if (s.is("kill")) ::kill(::getpid(), SIGKILL);
  errno = std::atoi(s.how.data());
  return true;
}

// How many of `bytes` this call may move: fewer if it is to be short, -1 with errno if there is no room.
ssize_t allowed(const char* call, std::string_view path, size_t bytes) {
  const auto whole = static_cast<ssize_t>(bytes);
  if (!concerns(call, path)) return whole;
  const Settings& s = settings();
  if (s.is("short")) {
    next_count();
    if (bytes > 1) remember(path);
    return bytes > 1 ? whole / 2 : whole;
  }
  if (!s.is("full")) return whole;
  const ssize_t room = static_cast<ssize_t>(s.at) - std::atomic_ref(s.seen->calls).load();
  if (room <= 0 && bytes > 0) {
    remember(path);
    errno = ENOSPC;
    return -1;
  }
  const ssize_t some = std::min(whole, room);
  std::atomic_ref(s.seen->calls).fetch_add(some);
  return some;
}

class PathOf {
 public:
  explicit PathOf(int fd) {
    std::array<char, 32> link{};
    std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
    const int before = errno;
    length_ = std::max<ssize_t>(0, ::readlink(link.data(), text_.data(), text_.size()));
    errno = before;
  }
  PathOf(int directory, const char* name) {
    if (name[0] == '/' || directory == AT_FDCWD) {
      append(name);
      return;
    }
    const PathOf parent(directory);
    append(parent.view());
    append("/");
    append(name);
  }
  std::string_view view() const { return {text_.data(), static_cast<size_t>(length_)}; }

 private:
  void append(std::string_view text) {
    const size_t count = std::min(text.size(), text_.size() - static_cast<size_t>(length_));
    std::copy_n(text.begin(), count, text_.begin() + length_);
    length_ += static_cast<ssize_t>(count);
  }
  std::array<char, PATH_MAX> text_{};
  ssize_t length_ = 0;
};

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int open_at(int directory, const char* path, int flags, mode_t mode) {
  if (fails((flags & O_DIRECTORY) != 0 ? "list" : "open", PathOf(directory, path).view())) return -1;
  return static_cast<int>(syscall(SYS_openat, directory, path, flags, mode));
}

mode_t mode_in(int flags, std::va_list rest) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : mode_t{0};
}

// What read, write and their kin have in common. Without a descriptor of ours it is the system call alone.
template <class Move>
ssize_t move_bytes(const char* call, int fd, size_t bytes, Move move) {
  if (settings().seen == nullptr || std::strstr(settings().calls.data(), call) == nullptr) return move(bytes);
  const PathOf path(fd);
  if (fails(call, path.view())) return -1;
  const ssize_t count = allowed(call, path.view(), bytes);
  return count < 0 ? -1 : move(static_cast<size_t>(count));
}

// Pages move whole.
constexpr unsigned kPage = 4096;

// What a read or write that is about to be submitted meets: 0 if it may go, perhaps with fewer bytes; else a negative errno.
int meets(io_uring_sqe& entry) {
  const bool writes = entry.opcode == IORING_OP_WRITE;
  const char* call = writes ? "write" : "read";
  if (settings().seen == nullptr || std::strstr(settings().calls.data(), call) == nullptr) return 0;
  const PathOf path(entry.fd);
  if (fails(call, path.view())) return -errno;
  const ssize_t count = allowed(call, path.view(), settings().is("full") || entry.len > kPage ? entry.len : 1);
  if (count < 0) return -errno;
  if (entry.len <= kPage && !settings().is("full")) return 0;
  const unsigned pages = static_cast<unsigned>(count) / kPage * kPage;
  if (pages == 0 && settings().is("full"))
    return allowed(call, path.view(), kPage) < 0 ? -errno : 0;  // the rest of the room
  entry.len = std::max(kPage, pages);
  return 0;
}

}  // namespace

extern "C" {

int io_uring_queue_init(unsigned entries, io_uring* ring, unsigned flags) {
  if (fails("ring", settings().below)) return -errno;
  return real<int(unsigned, io_uring*, unsigned)>("io_uring_queue_init")(entries, ring, flags);
}
int io_uring_submit(io_uring* ring) {
  for (unsigned at = ring->sq.sqe_head; at != ring->sq.sqe_tail; ++at)
    if (const int error = meets(ring->sq.sqes[at & ring->sq.ring_mask]); error != 0) return error;
  return real<int(io_uring*)>("io_uring_submit")(ring);
}

// ---- Opening

int open(const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return open_at(AT_FDCWD, path, flags, mode);
}
int openat(int directory, const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return open_at(directory, path, flags, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  return fails("open", path) ? nullptr : real<FILE*(const char*, const char*)>("fopen64")(path, mode);
}

// ---- Reading and writing

ssize_t read(int fd, void* bytes, size_t count) {
  return move_bytes("read", fd, count, [&](size_t n) { return syscall(SYS_read, fd, bytes, n); });
}
ssize_t pread(int fd, void* bytes, size_t count, off_t offset) {
  return move_bytes("read", fd, count, [&](size_t n) { return syscall(SYS_pread64, fd, bytes, n, offset); });
}
ssize_t write(int fd, const void* bytes, size_t count) {
  return move_bytes("write", fd, count, [&](size_t n) { return syscall(SYS_write, fd, bytes, n); });
}
ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  return move_bytes("write", fd, count, [&](size_t n) { return syscall(SYS_pwrite64, fd, bytes, n, offset); });
}
int posix_fallocate(int fd, off_t offset, off_t bytes) {  // tells an error by its result
  if (fails("reserve", PathOf(fd).view())) return errno;
  return syscall(SYS_fallocate, fd, 0, offset, bytes) == 0 ? 0 : errno;
}
int fsync(int fd) { return fails("sync", PathOf(fd).view()) ? -1 : static_cast<int>(syscall(SYS_fsync, fd)); }

// ---- Names

int rename(const char* from, const char* to) {
  return fails("rename", to) ? -1 : static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) {
  if (fails("rename", PathOf(to_directory, to).view())) return -1;
  return static_cast<int>(syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
}
int mkdir(const char* path, mode_t mode) {
  return fails("mkdir", path) ? -1 : static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}
int unlink(const char* path) {
  return fails("remove", path) ? -1 : static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}
int unlinkat(int directory, const char* path, int flags) {
  if (fails("remove", PathOf(directory, path).view())) return -1;
  return static_cast<int>(syscall(SYS_unlinkat, directory, path, flags));
}
int remove(const char* path) { return fails("remove", path) ? -1 : real<int(const char*)>("remove")(path); }

// ---- Looking

int stat(const char* path, struct stat* status) {
  return fails("stat", path) ? -1 : real<int(const char*, struct stat*)>("stat")(path, status);
}
int lstat(const char* path, struct stat* status) {
  return fails("stat", path) ? -1 : real<int(const char*, struct stat*)>("lstat")(path, status);
}
int fstat(int fd, struct stat* status) {
  return fails("stat", PathOf(fd).view()) ? -1 : real<int(int, struct stat*)>("fstat")(fd, status);
}
struct dirent* readdir(DIR* directory) {
  return fails("list", PathOf(dirfd(directory)).view()) ? nullptr : real<struct dirent*(DIR*)>("readdir")(directory);
}

// ---- Time

int clock_gettime(clockid_t clock, struct timespec* time) {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  const Settings& s = settings();
  if ((clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) && s.is("jump") && s.hits(next_count())) {
    ++s.seen->injected;
    time->tv_sec += s.seconds;
  }
  return result;
}
}
