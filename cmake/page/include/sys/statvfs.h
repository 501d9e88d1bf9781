#pragma once
// What libc++'s file systems ask for and WASI's C library lacks: a page has neither disks nor permissions, so that each of
// these fails (missing.cpp).
#include <sys/stat.h>
#include <sys/types.h>

struct statvfs {
  unsigned long f_frsize, f_blocks, f_bfree, f_bavail;
};

#ifdef __cplusplus
extern "C" {
#endif
int statvfs(const char* path, struct statvfs* result);
#ifdef __cplusplus
}
#endif
