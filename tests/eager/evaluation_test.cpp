// What an evaluation keeps, told from arithmetic: logits in fp32, joined anew with each batch.

#include <gtest/gtest.h>

#include "eager/estimate.h"
#include "model/catalogue.h"

namespace snug::eager {
namespace {

class Evaluating : public testing::Test {
 protected:
  Evaluating() {
    setup_.method = Method::lora;
    setup_.autocast = DType::bf16;
    setup_.targets = {"q_proj", "v_proj"};
    setup_.seq_len = 256;
    setup_.evaluation.batch = 4;
  }
  int64_t evaluated(int64_t rows) {
    setup_.evaluation.rows = rows;
    const Plan plan = estimate(spec_, setup_, stack_profile(), {});
    return plan.phases[static_cast<size_t>(Phase::evaluate)].allocated_bytes;
  }

  const ModelSpec spec_ = *find_model("TinyLlama/TinyLlama-1.1B-Chat-v1.0");
  eager::Setup setup_;
  const int64_t logits_ = int64_t{4} * 256 * 32000 * 4;  // of one batch
};

TEST_F(Evaluating, NothingIsEvaluatedWithoutRows) { EXPECT_EQ(evaluated(0), 0); }

TEST_F(Evaluating, TheLossAloneDoesNotGrowWithTheRows) {
  EXPECT_NEAR(static_cast<double>(evaluated(40)), static_cast<double>(evaluated(8)), 1 << 20);
}

TEST_F(Evaluating, KeptLogitsAreThereTwiceWhileTheyAreJoined) {
  setup_.evaluation.keeps_outputs = true;
  const auto more = static_cast<double>(evaluated(80) - evaluated(40));  // ten batches
  EXPECT_NEAR(more, 2.0 * 10 * static_cast<double>(logits_), 0.01 * more);
}

TEST_F(Evaluating, KeptLogitsThatGoToTheHostDoNotGrow) {
  setup_.evaluation.keeps_outputs = true;
  setup_.evaluation.moved_after = 2;
  EXPECT_EQ(evaluated(80), evaluated(40));
}

TEST_F(Evaluating, TheModelsOwnCacheIsHeldUntilTheBatchIsDone) {
  const int64_t without = evaluated(4);
  setup_.evaluation.cache = true;
  const int64_t cache = int64_t{2} * 22 * 4 * 256 * 4 * 64 * 2;  // keys and values of 22 blocks, 4 heads of 64
  EXPECT_EQ(evaluated(4) - without, cache);
}

}  // namespace
}  // namespace snug::eager
