// Sealing generated code: what came since is read-only, what others had stays writable, side by side in one mapping too.

#include "kernels/cpu/seal_code.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace snug::kernels::testing {

namespace {

constexpr size_t kPage = 4096;

// Anonymous, writable and executable pages; where `at` is given, there.
std::byte* code_pages(size_t pages, std::byte* at = nullptr) {
  void* const memory = mmap(at, pages * kPage, PROT_READ | PROT_WRITE | PROT_EXEC,
                            MAP_PRIVATE | MAP_ANONYMOUS | (at != nullptr ? MAP_FIXED : 0), -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

// The kernel answers EFAULT where a signal would end the program.
bool is_writable(std::byte* page) {
  const int zeros = open("/dev/zero", O_RDONLY);
  const bool written = read(zeros, page, 1) == 1;
  close(zeros);
  return written;
}

TEST(CodeSeal, seals_what_came_since_and_nothing_else) {
  std::byte* const pages = code_pages(5);
  if (pages == nullptr) GTEST_SKIP() << "writable code is not allowed here";
  munmap(pages, kPage);
  munmap(pages + 2 * kPage, kPage);
  munmap(pages + 4 * kPage, kPage);
  ASSERT_TRUE(is_writable(pages + kPage) && is_writable(pages + 3 * kPage));
  EXPECT_EQ(CodeSeal::writable_code(), CodeSeal::listed_code());
  EXPECT_GE(CodeSeal::listed_code().size(), 2);
  const CodeSeal seal;
  for (const size_t page : {0, 2, 4}) ASSERT_EQ(code_pages(1, pages + page * kPage), pages + page * kPage);
  seal.seal();
  for (size_t page = 0; page < 5; ++page) EXPECT_EQ(is_writable(pages + page * kPage), page % 2 == 1) << page;
  munmap(pages, 5 * kPage);
}

}  // namespace

}  // namespace snug::kernels::testing
