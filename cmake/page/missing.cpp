// What WASI's C library lacks, for libc++'s file systems: each fails as a call fails that the system does not know.
#include <sys/statvfs.h>

#include <cerrno>

#include "wasi_missing.h"

namespace {
int not_there() {
  errno = ENOSYS;
  return -1;
}
}  // namespace

extern "C" {
int fchmod(int, mode_t) { return not_there(); }
int fchmodat(int, const char*, mode_t, int) { return not_there(); }
int statvfs(const char*, struct statvfs*) { return not_there(); }
char* realpath(const char*, char*) {
  not_there();
  return nullptr;
}
}
