// Snapshots with a known cause, and a real one whose sums an independent reading of the file gave (Python's pickle, blocks
// of 512 bytes, the innermost frame outside of installed packages).

#include "explain/snapshot_explanation.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "explain/support_frames.h"

namespace snug::explain_tests {
namespace snapshot_tests {
namespace {

const std::string kModule = frame("/env/site-packages/torch/nn/modules/module.py", "_call_impl", 1790);
const std::string kTrain = frame("/home/me/train.py", "main", 88);
const std::string kForward = pickled::list({frame("??", "at::_ops::_softmax::call(at::Tensor const&)", 0),
                                            frame("/home/me/model.py", "attend", 47), kModule, kTrain});
const std::string kKept = pickled::list({frame("/home/me/train.py", "collect", 12), kTrain});
const std::string kUpdate = pickled::list({frame("/env/site-packages/torch/optim/adamw.py", "_init_group", 120),
                                           frame("/env/site-packages/torch/optim/adamw.py", "step", 240), kTrain});
const std::string kGradient =
    pickled::list({frame("", "torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)", 0),
                   frame("??", "torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)", 0)});
const std::string kSoftmaxBack =
    pickled::list({frame("??", "torch::autograd::generated::SoftmaxBackward0::apply(std::vector<at::Tensor>&&)", 0),
                   frame("??", "torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)", 0)});

std::string oom(int64_t size, int64_t device_free, const std::string& frames) {
  return pickled::dict({{"action", pickled::text("oom")},
                        {"device_free", pickled::integer(device_free)},
                        {"size", pickled::integer(size)},
                        {"stream", "K\x05"},
                        {"frames", frames}});
}

class Trace {
 public:
  int64_t alloc(int64_t mib, const std::string& frames) {
    const int64_t address = next_;
    next_ += mib * kMiB;
    events_.push_back(pickled::event("segment_alloc", address, mib * kMiB, frames));
    events_.push_back(pickled::event("alloc", address, mib * kMiB, frames));
    return address;
  }
  void free(int64_t address, int64_t mib) {
    events_.push_back(pickled::event("free_requested", address, mib * kMiB));
    events_.push_back(pickled::event("free_completed", address, mib * kMiB));
  }
  // The whole segment back to the device, as PyTorch does before it gives up.
  void release(int64_t address, int64_t mib) { events_.push_back(pickled::event("segment_free", address, mib * kMiB)); }
  void add(const std::string& event) { events_.push_back(event); }

  SnapshotExplanation explain() const {
    const std::string file = pickled::snapshot({}, events_);
    const Snapshot snapshot = read_snapshot(std::as_bytes(std::span(file)), "made.pickle");
    return explain_snapshot(snapshot);
  }

 private:
  int64_t next_ = int64_t{1} << 32;
  std::vector<std::string> events_;
};

int64_t held(const SnapshotExplanation& e, Holding holding) { return e.holders.by_holding[static_cast<size_t>(holding)]; }

int64_t sum(const Holders& holders) {
  int64_t bytes = 0;
  for (const int64_t one : holders.by_holding) bytes += one;
  return bytes;
}

TEST(SnapshotExplanation, a_shortage_in_forward_is_told_with_what_held_the_memory) {
  Trace trace;
  trace.alloc(64, kGradient);
  trace.alloc(300, kForward);
  trace.alloc(100, kUpdate);
  trace.alloc(40, kSoftmaxBack);
  trace.add(oom(200 * kMiB, 8 * kMiB, kForward));
  const SnapshotExplanation e = trace.explain();
  EXPECT_EQ(e.diagnosis.cause, Cause::shortage);
  EXPECT_EQ(e.moment, Moment::out_of_memory);
  EXPECT_EQ(e.stage.stage, TorchStage::forward);
  ASSERT_TRUE(e.own);
  EXPECT_EQ(e.own->file, "/home/me/model.py");
  EXPECT_EQ(e.own->line, 47);
  EXPECT_EQ(e.asked_bytes, 200 * kMiB);
  EXPECT_EQ(e.free_bytes, 8 * kMiB);
  EXPECT_EQ(e.diagnosis.missing_bytes, 192 * kMiB);
  EXPECT_EQ(held(e, Holding::gradients), 64 * kMiB);
  EXPECT_EQ(held(e, Holding::activations), 300 * kMiB);
  EXPECT_EQ(held(e, Holding::optimizer), 100 * kMiB);
  EXPECT_EQ(held(e, Holding::backward), 40 * kMiB);
  EXPECT_EQ(sum(e.holders), e.totals.active_bytes);
  EXPECT_EQ(text_of(e.holders.list.front()), "me/model.py:47 in attend");
  // A node of backward is tied to the line that called its operator.
  EXPECT_EQ(text_of(e.holders.list.back()), "SoftmaxBackward0, of me/model.py:47 in attend");
}

TEST(SnapshotExplanation, the_state_is_that_of_the_failure_not_after_the_exception) {
  Trace trace;
  const int64_t kept = trace.alloc(500, kForward);
  trace.add(oom(100 * kMiB, 0, kSoftmaxBack));
  trace.free(kept, 500);
  trace.alloc(1, kForward);
  const SnapshotExplanation e = trace.explain();
  EXPECT_EQ(e.totals.active_bytes, 500 * kMiB);
  EXPECT_EQ(e.stage.stage, TorchStage::backward);
  EXPECT_EQ(e.diagnosis.cause, Cause::shortage);
}

TEST(SnapshotExplanation, enough_in_pieces_is_fragmentation) {
  Trace trace;
  std::vector<int64_t> blocks;
  for (int i = 0; i < 4; ++i) {  // 100 MiB of which 60 are given back: the segment stays
    const int64_t start = (int64_t{1} << 32) + i * 1024 * kMiB;
    trace.add(pickled::event("segment_alloc", start, 100 * kMiB));
    trace.add(pickled::event("alloc", start, 60 * kMiB, kForward));
    trace.add(pickled::event("alloc", start + 60 * kMiB, 40 * kMiB, kForward));
    blocks.push_back(start);
  }
  for (const int64_t block : blocks) trace.free(block, 60);
  trace.add(oom(200 * kMiB, 20 * kMiB, kForward));
  const SnapshotExplanation e = trace.explain();
  EXPECT_EQ(e.diagnosis.cause, Cause::fragmentation);
  EXPECT_EQ(e.largest_free_bytes, 60 * kMiB);
  EXPECT_EQ(e.diagnosis.unused_bytes, 240 * kMiB);
}

TEST(SnapshotExplanation, one_tensor_beyond_everything_is_an_impossible_request) {
  Trace trace;
  trace.alloc(500, kForward);
  trace.add(oom(64 * 1024 * kMiB, 20 * 1024 * kMiB, kForward));
  EXPECT_EQ(trace.explain().diagnosis.cause, Cause::impossible_request);
}

TEST(SnapshotExplanation, what_is_kept_at_each_step_is_found_and_what_is_given_back_is_not) {
  Trace trace;
  trace.alloc(16, kUpdate);
  for (int step = 0; step < 8; ++step) {
    const int64_t activation = trace.alloc(100, kForward);
    trace.alloc(3, kKept);
    trace.free(activation, 100);
    trace.release(activation, 100);
    const int64_t temporary = trace.alloc(2, kUpdate);
    trace.free(temporary, 2);
    trace.release(temporary, 2);
  }
  trace.add(oom(100 * kMiB, 80 * kMiB, kForward));
  const SnapshotExplanation e = trace.explain();
  EXPECT_EQ(e.diagnosis.cause, Cause::shortage);
  ASSERT_EQ(e.growth.list.size(), 1U);
  EXPECT_EQ(e.growth.list[0].bytes_a_step, 3 * kMiB);
  ASSERT_TRUE(e.growth.list[0].place);
  EXPECT_EQ(e.growth.list[0].place->line, 12);
  EXPECT_EQ(e.growth.active_a_step, 3 * kMiB);
  ASSERT_FALSE(e.advice.empty());
  EXPECT_NE(e.advice.front().change.find("/home/me/train.py:12"), std::string::npos) << e.advice.front().change;
}

TEST(SnapshotExplanation, without_an_oom_the_peak_is_told) {
  Trace trace;
  const int64_t first = trace.alloc(200, kForward);
  trace.free(first, 200);
  trace.alloc(50, kGradient);
  const SnapshotExplanation e = trace.explain();
  EXPECT_EQ(e.moment, Moment::peak);
  EXPECT_EQ(e.totals.active_bytes, 200 * kMiB);
  EXPECT_EQ(held(e, Holding::activations), 200 * kMiB);
}

TEST(SnapshotExplanation, one_line_in_two_modules_is_told_apart_and_a_librarys_line_is_named) {
  const std::string llama = "/env/site-packages/transformers/models/llama/modeling_llama.py";
  const auto inside = [&](int64_t call) {
    return pickled::list({frame(llama, "rotate", 123), frame(llama, "forward", 147), kModule, frame(llama, "forward", call),
                          kModule, kTrain});
  };
  Trace trace;
  trace.alloc(100, inside(295));
  trace.alloc(70, inside(295));
  trace.alloc(50, inside(310));
  const SnapshotExplanation e = trace.explain();
  ASSERT_EQ(e.holders.list.size(), 2U);
  EXPECT_EQ(e.holders.list[0].bytes, 170 * kMiB);
  EXPECT_EQ(text_of(e.holders.tree.path(e.holders.list[0].module)), "modeling_llama.py:295");
  EXPECT_EQ(text_of(e.holders.tree.path(e.holders.list[1].module)), "modeling_llama.py:310");
  EXPECT_EQ(text_of(e.holders.list[0]),
            "llama/modeling_llama.py:123 in rotate");  // not the line of train.py that calls it all
  ASSERT_EQ(e.holders.modules.size(), 3U);
  EXPECT_EQ(e.holders.modules[0].bytes, 220 * kMiB);
  EXPECT_EQ(e.holders.modules[0].own_bytes, 0);
  EXPECT_EQ(e.own->line, 88);
}

TEST(SnapshotExplanation, an_empty_snapshot_is_refused) { EXPECT_THROW(Trace().explain(), std::exception); }

TEST(SnapshotExplanation, a_real_training_step_at_its_peak) {
  const char* shared = std::getenv("SNUG_SHARED");
  const std::filesystem::path root = shared != nullptr ? shared : SNUG_SOURCE_DIR "/../shared";
  const std::filesystem::path file = root / "data/snapshots/gpt_medium_ctx1024_training.pickle";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is absent";
  const Snapshot snapshot = read_snapshot(file);
  const SnapshotExplanation e = explain_snapshot(snapshot);
  EXPECT_EQ(e.event, 3738U);
  EXPECT_EQ(sum(e.holders), e.totals.active_bytes);
  EXPECT_EQ(held(e, Holding::gradients), 95485952);
  EXPECT_EQ(held(e, Holding::backward), 1367351296 + 512);  // of nodes; and what loss.backward() starts from
  const auto find = [&](std::string_view file_end, int64_t line) -> const Holder* {
    for (const Holder& holder : e.holders.list)
      if (holder.holding == Holding::activations && holder.place && holder.place->line == line &&
          holder.place->file.ends_with(file_end))
        return &holder;
    return nullptr;
  };
  const Holder* softmax = find("nn_utils.py", 6);
  ASSERT_NE(softmax, nullptr);
  EXPECT_EQ(softmax->bytes, 6442450944);
  EXPECT_EQ(softmax->blocks, 24);
  const Holder* silu = find("model.py", 532);
  ASSERT_NE(silu, nullptr);
  EXPECT_EQ(silu->bytes, 1543503872);
  // Blocks by module, counted from the frames of the file.
  const auto blocks_in = [&](std::string_view module) {
    for (const ModuleSum& one : e.holders.modules)
      if (text_of(e.holders.tree.path(one.module)) == module) return one.blocks;
    return int64_t{0};
  };
  EXPECT_EQ(blocks_in("model.py"), 752);
  EXPECT_EQ(blocks_in("model.py:253 › :382"), 428);
  EXPECT_EQ(blocks_in("model.py:253 › :386 › :399"), 161);
  EXPECT_EQ(e.holders.modules[0].bytes, held(e, Holding::activations));
}

}  // namespace
}  // namespace snapshot_tests
}  // namespace snug::explain_tests
