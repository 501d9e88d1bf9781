// Counts allocations through operator new of this whole test program; sanitizers need their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <atomic>
#include <cstdlib>
#include <new>

#include "data/loader.h"
#include "data/support_batch.h"
#include "tokenizer/support.h"

namespace {

std::atomic<int64_t> allocations = 0;

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace snug {
namespace {

TEST(Loader, AllocatesNothingWhileStepping) {
  const test::TemporaryDirectory directory;
  DatasetRequest request;
  std::string jsonl;
  for (int i = 0; i < 500; ++i) jsonl += "{\"text\":\"" + std::string(static_cast<size_t>(i % 90 + 1), 'x') + "\"}\n";
  request.data = directory.write("d.jsonl", jsonl);
  request.directory = directory.file("out");
  request.seq_len = 128;
  request.eos_id = 1;
  prepare_dataset(request, test::byte_tokenizer());
  LoaderOptions options;
  options.batch = 3;
  options.accumulation = 2;
  Loader loader(request.directory, options);
  test::HeldBatch batch(128, 3 * 128);
  const int64_t before = allocations;
  for (int64_t step = 0; step < 3 * loader.steps_per_epoch(); ++step) {
    const Window window = loader.window(step);
    for (int64_t i = 0; i < window.micro_batches; ++i) loader.fill(window, i, batch);
  }
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace snug

#endif
