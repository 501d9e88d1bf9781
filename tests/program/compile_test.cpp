// What the recipe asks of the model, checked before anything is built.

#include "program/compile.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/catalogue.h"

namespace snug {

namespace {

Recipe of_length(int64_t tokens) {
  Recipe recipe;
  recipe.seq_len = tokens;
  return recipe;
}

std::string refusal(const ModelSpec& spec, const Recipe& recipe) {
  try {
    compile(spec, recipe);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SequenceLength, AutoIs1024OrTheModelsLimit) {
  ModelSpec spec = *find_model("Mistral-7B-v0.1");
  EXPECT_EQ(sequence_length(spec, of_length(0)), 1024);
  spec.max_position = 256;
  EXPECT_EQ(sequence_length(spec, of_length(0)), 256);
}

TEST(SequenceLength, MayBeLongerThanTheSlidingWindow) {
  const ModelSpec spec = *find_model("Mistral-7B-v0.1");
  EXPECT_EQ(sequence_length(spec, of_length(8192)), 8192);
  EXPECT_EQ(refusal(spec, of_length(8192)), "accepted");
}

TEST(SequenceLength, BeyondTheModelsPositionsIsRefused) {
  EXPECT_EQ(refusal(*find_model("Llama-2-7b-hf"), of_length(4097)),
            "recipe: max_length is 4097 (the model's positions end at 4096)");
}

}  // namespace

}  // namespace snug
