#pragma once
// SNUG_CLONES before a function has GCC compile it also for AVX2 and AVX-512 and choose when the program starts. Where that
// does not work (other compilers and processors, sanitizers) the function is compiled once.

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SNUG_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define SNUG_CLONES
#endif
