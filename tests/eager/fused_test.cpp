// fms-acceleration's fused kernels, loops of one's own and GPTQ's linears: against figures that were published in bytes
// (fms-acceleration, scripts/benchmarks/refs, an A100, rows of 4,096 tokens, torch 2.4.1), and among themselves.

#include <gtest/gtest.h>

#include "eager/estimate.h"
#include "model/catalogue.h"

namespace snug::eager {
namespace {

constexpr Target kA100{};

Setup published(Method method, int64_t batch) {
  Setup setup;
  setup.method = method;
  setup.autocast = DType::bf16;
  setup.rank = 16;
  setup.dropout = 0.1;
  setup.targets = {"q_proj", "k_proj", "v_proj", "o_proj"};
  setup.attention = Attention::flash;
  setup.batch = batch;
  setup.seq_len = 4096;
  setup.fused.norm = setup.fused.rope = true;
  return setup;
}

ModelSpec padded(const char* name, int64_t words) {
  ModelSpec spec = *find_model(name);
  spec.vocab_size = words;
  spec.dtype = DType::bf16;
  return spec;
}

double error_of_published(const ModelSpec& spec, const Setup& setup, const char* transformers, double published_bytes) {
  const Plan plan = estimate(spec, setup, stack_profile("2.4.1", transformers, "0.13.2", "0.43.3"), kA100);
  return 100 * (static_cast<double>(plan.allocated_bytes) / published_bytes - 1);
}

TEST(FusedKernels, TakeWhatWasPublished) {
  const ModelSpec llama = padded("meta-llama/Meta-Llama-3-8B", 128258), mistral = padded("mistralai/Mistral-7B-v0.1", 32001);
  auto setup = published(Method::lora, 4);
  setup.fused.loss = true;
  EXPECT_NEAR(error_of_published(llama, setup, "4.45.2", 37'644'015'616.0), 0, 0.05);
  setup.fused.loss = false;
  setup.fused.linear_loss = true;
  EXPECT_NEAR(error_of_published(llama, setup, "4.45.2", 24'905'936'896.0), 0, 0.05);
  setup.quantization = Quantization::four_bit;
  setup.fused.adapters = true;
  EXPECT_NEAR(error_of_published(mistral, setup, "4.45.2", 13'035'024'896.0), 0, 0.05);
}

int64_t allocated(const Setup& setup) {
  const ModelSpec spec = *find_model("TinyLlama/TinyLlama-1.1B-Chat-v1.0");
  return estimate(spec, setup, stack_profile("2.4.1", "4.48.1"), kA100).allocated_bytes;
}

TEST(FusedKernels, TheLossIsMadeWithoutASecondCopy) {
  auto setup = published(Method::lora, 2);
  const int64_t stock = allocated(setup);
  setup.fused.loss = true;
  const int64_t logits = 4 * 2 * 4096 * find_model("TinyLlama/TinyLlama-1.1B-Chat-v1.0")->vocab_size;
  EXPECT_LT(allocated(setup), stock - logits / 2);
}

TEST(OwnLoop, ALossOfTheLogitsThemselvesIsSmaller) {
  auto setup = published(Method::lora, 2);
  setup.autocast.reset();
  setup.own_loop = true;
  const int64_t widened = allocated(setup);
  setup.own_loss = true;
  EXPECT_LT(allocated(setup), widened);
}

TEST(Gptq, HoldsFourBitsAWeight) {
  auto setup = published(Method::lora, 1);
  setup.weights = DType::f16;
  setup.autocast = DType::f16;
  setup.fused = {};
  const ModelSpec spec = *find_model("TinyLlama/TinyLlama-1.1B-Chat-v1.0");
  const StackProfile stack = stack_profile("2.4.1", "4.48.1");
  const int64_t whole = estimate(spec, setup, stack, kA100).static_bytes;
  setup.quantization = Quantization::gptq;
  const double linears = 968'884'224.0;  // of the blocks
  const double saved = static_cast<double>(whole - estimate(spec, setup, stack, kA100).static_bytes);
  EXPECT_NEAR(saved / linears, 2 - 0.52, 0.02);
}

TEST(RowLengths, ThatVaryLeaveMoreReserved) {
  auto setup = published(Method::lora, 1);
  const ModelSpec spec = *find_model("TinyLlama/TinyLlama-1.1B-Chat-v1.0");
  const StackProfile stack = stack_profile("2.4.1", "4.48.1");
  const Plan even = estimate(spec, setup, stack, kA100);
  setup.lengths = {1500, 4096, 2700, 900, 3500, 4096, 600, 2100};
  const Plan varied = estimate(spec, setup, stack, kA100);
  EXPECT_GE(varied.reserved_bytes, even.reserved_bytes);
  EXPECT_NEAR(static_cast<double>(varied.allocated_bytes), static_cast<double>(even.allocated_bytes),
              0.02 * static_cast<double>(even.allocated_bytes));
}

}  // namespace
}  // namespace snug::eager
