#pragma once
// What libc++'s file systems call and WASI's C library lacks. A page has neither links to follow nor permissions to change:
// these fail (missing.cpp).
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#ifndef DT_SOCK
#define DT_SOCK 12
#endif

#ifdef __cplusplus
extern "C" {
#endif
int fchmod(int descriptor, mode_t mode);
int fchmodat(int directory, const char* path, mode_t mode, int flags);
char* realpath(const char* path, char* resolved);
#ifdef __cplusplus
}
#endif
