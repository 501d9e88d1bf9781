// Whatever a block lets go of and makes again, the step gives the same bits.

#include "program/passes/recompute.h"

#include <gtest/gtest.h>

#include "plan/layout.h"
#include "plan/workspaces.h"
#include "program/adjoint.h"
#include "program/passes/list.h"
#include "program/passes/optimizer.h"
#include "program/support_tiny.h"
#include "run/in_place.h"
#include "run/synthetic_run.h"

namespace snug::testing {

namespace {

ModelSpec decoder_with_more_norms() {
  ModelSpec spec = tiny_decoder();
  spec.naming = TensorNaming::gemma;
  spec.query_key_norms = spec.post_norms = true;
  return spec;
}

Program differentiated_decoder(const ModelSpec& spec) {
  Program program = build_forward(spec, {}, {.batch = 2, .seq_len = 16, .micro_batches = 2});
  for (Weight& weight : program.weights) weight.trainable = true;
  differentiate(program);
  return program;
}

// The weights after two steps, as bytes.
std::vector<std::byte> trained(const ModelSpec& spec, Program program, const SavedByLayer& released) {
  recompute(program, {.released = released});
  place_weights(program, {});
  add_optimizer(program, {});
  const Recipe recipe;
  const Precision precision;
  for (const auto pass : {passes::load, passes::save}) pass(program, {spec, recipe, precision});
  fit_to_target(program, {.threads = 2});
  const Layout layout = lay_out(program);
  Executor executor(program, layout);
  fill_at_random(executor, spec);
  RandomBatches batches(executor, spec);
  for (int64_t step = 1; step <= 2; ++step) run_random_step(executor, batches, step);
  std::vector<std::byte> all;
  for (const Weight& weight : program.weights)
    for (int64_t layer = weight.parameter.first_layer; layer < weight.parameter.end_layer(program.layers); ++layer) {
      const auto bytes = InPlace::elements(executor, weight.tensor, layer);
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
  return all;
}

TEST(Recomputed, named_parts_give_the_bits_of_what_was_kept) {
  for (const ModelSpec& spec : {tiny_decoder(), decoder_with_more_norms()}) {
    const std::vector<std::byte> kept = trained(spec, differentiated_decoder(spec), {});
    for (int part = 0; part < kBlockPartCount; ++part) {
      Program program = differentiated_decoder(spec);
      recompute_blocks(program, {0, 1, 2, 3}, {static_cast<BlockPart>(part)});
      EXPECT_EQ(trained(spec, std::move(program), {}), kept) << name_of(static_cast<BlockPart>(part));
    }
  }
}

TEST(Recomputed, parts_of_blocks_give_the_bits_of_those_that_were_kept) {
  for (const ModelSpec& spec : {tiny_decoder(), decoder_with_more_norms()}) {
    const Program program = differentiated_decoder(spec);
    const std::vector<StorageId> saved = program.blocks.front().saved;
    const std::vector<std::byte> kept = trained(spec, program, {});
    ASSERT_FALSE(kept.empty());
    for (StorageId one : saved)  // each alone, in two of four layers
      EXPECT_TRUE(trained(spec, program, {{1, {one}}, {3, {one}}}) == kept) << program.storage(one).name;
    for (StorageId one : saved) {  // each kept alone, in all
      std::set<StorageId> others(saved.begin(), saved.end());
      others.erase(one);
      EXPECT_TRUE(trained(spec, program, {{0, others}, {1, others}, {2, others}, {3, others}}) == kept)
          << program.storage(one).name;
    }
    const std::set<StorageId> all(saved.begin(), saved.end());
    EXPECT_TRUE(trained(spec, program, {{0, all}, {1, {saved[0]}}, {2, {saved[1], saved[2]}}}) == kept);
  }
}

}  // namespace

}  // namespace snug::testing
