// Causes of small programs whose course is written down: what would have let them go on is known. Real ones are those of
// bench/laboratory.

#include "explain/verdict.h"

#include <gtest/gtest.h>

#include "explain/snapshot_explanation.h"
#include "explain/support_frames.h"

namespace snug::explain_tests {
namespace verdict_tests {
namespace {

const std::string kTorch = "/env/lib/python3.11/site-packages/torch/";
const std::string kCall = frame(kTorch + "nn/modules/module.py", "_call_impl", 1790);

std::string script(int64_t line) { return frame("/home/me/train.py", "<module>", line); }

std::string at(int64_t line) { return pickled::list({script(line)}); }
std::string loading(int64_t line) {
  return pickled::list({frame(kTorch + "nn/modules/module.py", "_apply", 900), script(line)});
}
std::string in_model(int64_t line) {
  return pickled::list({frame("/home/me/model.py", "forward", line), kCall, script(21)});
}
std::string in_attention(std::string_view op) {
  return pickled::list({frame("??", "at::_ops::" + std::string(op) + "::call(at::Tensor const&)", 0),
                        frame("/home/me/model.py", "eager_attention_forward", 60), frame("/home/me/model.py", "forward", 41),
                        kCall, script(21)});
}
std::string in_loss() {
  return pickled::list({frame(kTorch + "nn/functional.py", "cross_entropy", 3479), frame("/home/me/model.py", "forward", 50),
                        kCall, script(21)});
}
std::string in_step(std::string_view function) {
  return pickled::list(
      {frame(kTorch + "optim/adamw.py", function, 120), frame(kTorch + "optim/adamw.py", "step", 240), script(24)});
}
std::string in_backward() {
  return pickled::list({frame("", "torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)", 0),
                        frame("??", "torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)", 0)});
}

// A program on a card that ends where memory runs out. Segments are as large as their blocks and go back when those do.
class Program {
 public:
  size_t alloc(int64_t mib, const std::string& frames) {
    blocks_.push_back({next_, mib * kMiB});
    next_ += 4096 * kMiB;
    events_.push_back(pickled::event("segment_alloc", blocks_.back().address, mib * kMiB, frames));
    events_.push_back(pickled::event("alloc", blocks_.back().address, mib * kMiB, frames));
    return blocks_.size() - 1;
  }
  void free(size_t block, bool segment = true) {
    const auto [address, bytes] = blocks_[block];
    events_.push_back(pickled::event("free_requested", address, bytes));
    events_.push_back(pickled::event("free_completed", address, bytes));
    if (segment) events_.push_back(pickled::event("segment_free", address, bytes));
  }

  SnapshotExplanation fails(int64_t mib, int64_t free_mib, const std::string& frames, const Expected* expected = nullptr) {
    events_.push_back(pickled::dict({{"action", pickled::text("oom")},
                                     {"device_free", pickled::integer(free_mib * kMiB)},
                                     {"size", pickled::integer(mib * kMiB)},
                                     {"stream", "K\x05"},
                                     {"frames", frames}}));
    const std::string file = pickled::snapshot({}, events_);
    return explain_snapshot(read_snapshot(std::as_bytes(std::span(file)), "made.pickle"), expected);
  }

 private:
  struct Made {
    int64_t address, bytes;
  };
  int64_t next_ = int64_t{1} << 32;
  std::vector<Made> blocks_;
  std::vector<std::string> events_;
};

void load(Program& program, int64_t line = 10) {
  for (int i = 0; i < 6; ++i) program.alloc(20, loading(line));
}

// One step that gives back all it took, but for `kept` MiB at a line of the script.
void step(Program& program, int64_t mib, int64_t kept = 0) {
  const size_t batch = program.alloc(1, at(20)), first = program.alloc(mib, in_model(40)),
               second = program.alloc(mib, in_model(45));
  program.free(second);
  program.free(first);
  const size_t update = program.alloc(2, in_step("_multi_tensor_adamw"));
  program.free(update);
  if (kept > 0) program.alloc(kept, at(26));
  program.free(batch);
}

std::string first_word(const SnapshotExplanation& e) { return e.advice.empty() ? "" : e.advice.front().todo; }

TEST(Verdict, weights_that_do_not_fit) {
  Program program;
  load(program);
  const auto e = program.fails(20, 3, loading(10));
  EXPECT_EQ(e.verdict.cause, Cause::shortage);
  EXPECT_EQ(e.verdict.filler, Filler::weights);
  EXPECT_TRUE(std::ranges::any_of(e.diagnosis.remarks,
                                  [](const std::string& one) { return one.find("other processes hold") != one.npos; }));
  EXPECT_EQ(e.verdict.limit_bytes, 123 * kMiB);
  EXPECT_EQ(e.stage.stage, TorchStage::load);
  EXPECT_EQ(first_word(e), "quantize_4bit");
}

TEST(Verdict, a_second_set_of_weights_by_another_line) {
  Program program;
  load(program, 10);
  load(program, 14);
  const auto e = program.fails(20, 3, loading(14));
  EXPECT_EQ(e.verdict.filler, Filler::second_model);
  EXPECT_EQ(e.verdict.contents.second_weights, 120 * kMiB);
}

TEST(Verdict, a_checkpoints_tensors_beside_the_model) {
  Program program;
  load(program, 10);
  for (int i = 0; i < 4; ++i) program.alloc(20, at(12));
  const auto e = program.fails(20, 3, at(12));
  EXPECT_EQ(e.verdict.filler, Filler::second_model);
  EXPECT_EQ(e.stage.stage, TorchStage::load);
}

TEST(Verdict, activations_of_a_first_step) {
  Program program;
  load(program);
  program.alloc(1, at(20));
  for (int layer = 0; layer < 10; ++layer) program.alloc(30, in_model(40));
  const auto e = program.fails(30, 10, in_model(40));
  EXPECT_EQ(e.verdict.filler, Filler::activations);
  EXPECT_EQ(first_word(e), "gradient_checkpointing");
  EXPECT_FALSE(e.verdict.whole());
}

TEST(Verdict, scores_of_attention) {
  Program program;
  load(program);
  program.alloc(1, at(20));
  for (int layer = 0; layer < 5; ++layer) {
    program.alloc(10, in_model(40));
    program.alloc(60, in_attention("_softmax"));
  }
  const auto e = program.fails(60, 10, in_attention("bmm"));
  EXPECT_EQ(e.verdict.filler, Filler::attention);
  EXPECT_EQ(first_word(e), "flash_attention");
}

TEST(Verdict, logits_and_their_copies) {
  Program program;
  load(program);
  program.alloc(1, at(20));
  program.alloc(50, in_model(40));
  program.alloc(300, in_loss());
  const auto e = program.fails(300, 40, in_loss());
  EXPECT_EQ(e.verdict.filler, Filler::logits);
  EXPECT_EQ(first_word(e), "fused_loss");
}

// As an H100 told it: the head's own product is held while its copy in fp32 does not fit.
TEST(Verdict, the_product_of_a_head_is_logits) {
  const std::string linear = frame(kTorch + "nn/modules/linear.py", "forward", 134);
  const auto model = [](int64_t line) { return frame("/env/transformers/models/llama/modeling_llama.py", "forward", line); };
  const std::string checkpoint = frame(kTorch + "utils/checkpoint.py", "recompute_fn", 1120);
  Program program;
  load(program);
  program.alloc(1, at(20));
  program.alloc(30, pickled::list({linear, kCall, model(175), kCall, model(403), kCall, model(467), kCall, script(21)}));
  program.alloc(20, pickled::list({linear, kCall, model(403), checkpoint, kCall, script(21)}));
  program.alloc(200, pickled::list({linear, kCall, model(480), kCall, script(21)}));
  const auto e = program.fails(400, 240, in_loss());
  EXPECT_EQ(e.verdict.filler, Filler::logits);
  EXPECT_EQ(e.verdict.contents.logits, 200 * kMiB);
  EXPECT_EQ(e.verdict.contents.activations, 50 * kMiB);
}

TEST(Verdict, gradients_are_what_backward_made_in_the_size_of_weights) {
  Program program;
  load(program);
  program.alloc(1, at(20));
  program.alloc(30, in_model(40));
  for (int i = 0; i < 5; ++i) program.alloc(20, in_backward());
  program.alloc(7, in_backward());
  const auto e = program.fails(20, 2, in_backward());
  EXPECT_EQ(e.verdict.filler, Filler::gradients);
  EXPECT_EQ(e.verdict.contents.gradients, 100 * kMiB);
  EXPECT_EQ(e.verdict.contents.temporaries, 7 * kMiB);
}

TEST(Verdict, states_and_temporaries_of_an_optimizer) {
  Program program;
  load(program);
  for (int i = 0; i < 5; ++i) program.alloc(20, in_backward());
  for (int i = 0; i < 3; ++i) program.alloc(20, in_step("_init_group"));
  Program other = program;
  EXPECT_EQ(program.fails(20, 2, in_step("_init_group")).verdict.filler, Filler::optimizer_states);
  const auto e = other.fails(20, 2, in_step("_multi_tensor_adamw"));
  EXPECT_EQ(e.verdict.filler, Filler::optimizer_temporaries);
  EXPECT_EQ(first_word(e), "optimizer_foreach_off");
}

TEST(Verdict, one_long_batch_among_short_ones) {
  Program program;
  load(program);
  for (int i = 0; i < 5; ++i) step(program, 20);
  program.alloc(1, at(20));
  program.alloc(60, in_model(40));
  const auto e = program.fails(60, 30, in_model(45));
  EXPECT_EQ(e.verdict.filler, Filler::long_batch);
  EXPECT_EQ(first_word(e), "shorter_sequences");
}

TEST(Verdict, what_each_step_leaves_behind_goes_before_all_else) {
  Program program;
  load(program);
  for (int i = 0; i < 8; ++i) step(program, 20, 12);
  program.alloc(1, at(20));
  program.alloc(20, in_model(40));
  const auto e = program.fails(20, 5, in_model(45));
  EXPECT_EQ(e.verdict.filler, Filler::kept_tensors);
  EXPECT_EQ(e.growth.active_a_step, 12 * kMiB);
  EXPECT_NE(e.advice.front().change.find("/home/me/train.py:26"), std::string::npos) << e.advice.front().change;
  EXPECT_TRUE(e.verdict.whole());
}

TEST(Verdict, holes_are_the_cause_only_if_the_step_had_fitted_without_them) {
  const auto fails_with = [](int64_t free_mib) {
    Program program;
    load(program);
    for (int i = 0; i < 4; ++i) step(program, 40);
    std::vector<size_t> holes;
    for (int i = 0; i < 4; ++i) holes.push_back(program.alloc(10, in_model(40)));
    for (const size_t hole : holes) program.free(hole, false);  // their segments stay
    program.alloc(1, at(20));
    program.alloc(40, in_model(40));
    return program.fails(40, free_mib, in_model(45));
  };
  EXPECT_EQ(fails_with(5).verdict.cause, Cause::fragmentation);
  EXPECT_EQ(first_word(fails_with(5)), "expandable_segments");
}

// What a first step still takes, by the model of its recipe: from the stage on in which it failed.
TEST(Verdict, a_recipe_tells_the_rest_of_a_first_step) {
  const Expected expected{
      .engine = "TRL on PyTorch",
      .first = {.load = 120 * kMiB, .forward = 300 * kMiB, .backward = 420 * kMiB, .optimizer = 380 * kMiB},
      .later = {.load = 120 * kMiB, .forward = 500 * kMiB, .backward = 620 * kMiB, .optimizer = 380 * kMiB},
      .own_first = {.load = 120 * kMiB, .forward = 300 * kMiB, .backward = 440 * kMiB, .optimizer = 380 * kMiB}};
  const auto fails_in = [&](const std::string& frames) {
    Program program;
    load(program);
    program.alloc(1, at(20));
    program.alloc(60, in_model(40));
    return program.fails(40, 5, frames, &expected);
  };
  const auto forward = fails_in(in_model(45));
  EXPECT_EQ(forward.verdict.need_told, NeedTold::recipe);
  EXPECT_EQ(forward.verdict.needed_bytes, 440 * kMiB);  // a loop of the script's own, in its first step
  EXPECT_EQ(forward.verdict.cause, Cause::shortage);
  EXPECT_EQ(fails_in(in_step("_multi_tensor_adamw")).verdict.needed_bytes, 380 * kMiB);
  EXPECT_EQ(fails_in(loading(10)).verdict.need_told, NeedTold::nobody);  // it holds more than the recipe loads
}

TEST(Verdict, a_copy_of_the_weights_needs_what_is_left_of_them) {
  Program program;
  for (const int64_t mib : {40, 20, 20, 20, 30}) program.alloc(mib, loading(10));
  for (const int64_t mib : {40, 20}) program.alloc(mib, loading(14));
  const auto copy = program.fails(20, 3, loading(14));
  EXPECT_EQ(copy.verdict.need_told, NeedTold::weights);
  EXPECT_EQ(copy.verdict.needed_bytes, 260 * kMiB);
  Program other;
  for (const int64_t mib : {40, 20, 20, 20, 30}) other.alloc(mib, loading(10));
  for (const int64_t mib : {50, 20}) other.alloc(mib, loading(14));
  EXPECT_EQ(other.fails(20, 3, loading(14)).verdict.need_told, NeedTold::nobody);  // another model
}

TEST(Verdict, a_generation_needs_the_cache_of_the_layers_to_come) {
  const auto in_layer = [](int64_t line) {
    return pickled::list({frame("/home/me/cache.py", "update", line), frame("/home/me/model.py", "forward", line), kCall,
                          frame("/home/me/model.py", "forward", 80), kCall, frame("/home/me/model.py", "forward", 70), kCall,
                          frame("/env/lib/python3.11/site-packages/transformers/generation/utils.py", "generate", 2000),
                          script(30)});
  };
  Program program;
  for (int i = 0; i < 6; ++i) program.alloc(20, loading(10));  // six layers of one matrix
  program.alloc(4,
                pickled::list({frame("/home/me/model.py", "forward", 60), kCall,
                               frame("/env/lib/python3.11/site-packages/transformers/generation/utils.py", "generate", 2000),
                               script(30)}));  // the embeddings
  for (int layer = 0; layer < 3; ++layer) {
    const size_t meanwhile = program.alloc(6, in_layer(40));
    program.alloc(10, in_layer(41));
    program.free(meanwhile);
  }
  program.alloc(6, in_layer(40));
  const auto e = program.fails(10, 3, in_layer(41));
  EXPECT_EQ(e.stage.stage, TorchStage::generate);
  EXPECT_EQ(e.verdict.need_told, NeedTold::layers);
  EXPECT_EQ(e.verdict.needed_bytes, (120 + 4 + 5 * 10 + 16) * kMiB);
}

// The first layer leaves its output behind as well, which the next one replaces: the cache tells what a layer adds.
TEST(Verdict, one_layer_tells_by_its_cache) {
  const std::string utils = "/env/lib/python3.11/site-packages/transformers/";
  const auto in_layer = [&](const std::string& file, const std::string& function, int64_t line) {
    return pickled::list({frame(file, function, line), frame("/home/me/model.py", "forward", line), kCall,
                          frame("/home/me/model.py", "forward", 80), kCall, frame("/home/me/model.py", "forward", 70), kCall,
                          frame(utils + "generation/utils.py", "generate", 2000), script(30)});
  };
  const auto other = [&](int64_t line) { return in_layer("/home/me/model.py", "inner", line); };
  const auto cache = [&](int64_t line) { return in_layer(utils + "cache_utils.py", "update", line); };
  Program program;
  for (int i = 0; i < 6; ++i) program.alloc(20, loading(10));
  program.alloc(4, pickled::list({frame("/home/me/model.py", "forward", 60), kCall,
                                  frame(utils + "generation/utils.py", "generate", 2000), script(30)}));
  const size_t meanwhile = program.alloc(6, other(40));
  for (int i = 0; i < 2; ++i) program.alloc(5, cache(41));
  program.alloc(3, other(42));
  program.free(meanwhile);
  program.alloc(6, other(40));
  program.alloc(5, cache(41));
  const auto e = program.fails(5, 3, cache(41));
  EXPECT_EQ(e.verdict.need_told, NeedTold::layers);
  EXPECT_EQ(e.verdict.needed_bytes, (120 + 4 + 13 + 4 * 10 + 19) * kMiB);
}

// Activations with the length, scores with its square, gradients not at all: an earlier round, written anew.
TEST(Verdict, the_rest_of_a_longer_batch_follows_from_shorter_ones) {
  Program program;
  load(program);
  const auto round = [&](int64_t n) {  // in hundredths of the usual length
    const size_t batch = program.alloc(n / 10, at(20)), first = program.alloc(2 * n / 5, in_model(40));
    const size_t scores = program.alloc(n * n / 400, in_attention("bmm")), gradient = program.alloc(20, in_backward());
    for (const size_t block : {gradient, scores, first, batch}) program.free(block);
  };
  for (const int64_t n : {100, 100, 120, 100}) round(n);
  program.alloc(36, at(20));
  const auto e = program.fails(144, 143, in_model(40));
  EXPECT_EQ(e.verdict.need_told, NeedTold::rounds);
  EXPECT_EQ(e.verdict.needed_bytes, (120 + 36 + 144 + 324 + 20) * kMiB);
  EXPECT_EQ(e.verdict.filler, Filler::long_batch);
}

// Of 42 GiB and more, larger than the device: but a model's own head asked for it.
TEST(Verdict, logits_are_no_wrong_shape_however_large) {
  const std::string models = "/env/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py";
  const std::string head = pickled::list(
      {frame(kTorch + "nn/modules/linear.py", "forward", 134), kCall, frame(models, "forward", 480), kCall, script(21)});
  Program program;
  load(program);
  const auto e = program.fails(64 * 1024, 500, head);
  EXPECT_EQ(e.verdict.cause, Cause::shortage);
  EXPECT_EQ(e.verdict.filler, Filler::logits);
}

TEST(Verdict, room_that_was_refused_is_a_limit) {
  Program program;
  load(program);
  const auto e = program.fails(20, 500, loading(10));
  EXPECT_EQ(e.verdict.cause, Cause::memory_limit);
  EXPECT_EQ(first_word(e), "raise_fraction");
}

TEST(Verdict, a_tensor_larger_than_the_device_is_a_wrong_shape) {
  Program program;
  load(program);
  EXPECT_EQ(program.fails(64 * 1024, 500, in_model(40)).verdict.cause, Cause::impossible_request);
}

}  // namespace
}  // namespace verdict_tests
}  // namespace snug::explain_tests
