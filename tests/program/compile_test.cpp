// What the recipe asks of the model, checked before anything is built.

#include "program/compile.h"

#include <gtest/gtest.h>

#include <set>

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

// Of a family whose step is not modelled the refusal says so; every other one compiles, full and with an adapter.
TEST(Compile, TakesAModelOfEveryFamilyOrRefusesItByName) {
  std::set<std::string> seen;
  for (const std::string& name : model_names()) {
    const ModelSpec spec = *find_model(name);
    if (!seen.insert(spec.family).second) continue;
    for (const Method method : {Method::full, Method::lora}) {
      Recipe recipe = of_length(64);
      recipe.method = method;
      const std::string answer = refusal(spec, recipe);
      if (spec.unmodelled_step.empty()) {
        EXPECT_EQ(answer, "accepted") << name;
      } else {
        EXPECT_NE(answer.find("is not modelled yet: " + spec.unmodelled_step), std::string::npos) << answer;
      }
    }
  }
  EXPECT_GE(seen.size(), 35U);
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

TEST(SequenceLength, BeyondATableOfPositionsIsRefused) {
  EXPECT_EQ(refusal(*find_model("gpt2"), of_length(1025)), "recipe: max_length is 1025 (the model's positions end at 1024)");
}

// Rotations go on, in transformers too.
TEST(SequenceLength, BeyondThePositionsThatAModelWasMadeForIsTold) {
  EXPECT_EQ(refusal(*find_model("Llama-2-7b-hf"), of_length(4097)), "accepted");
  const Program program = compile(*find_model("Llama-2-7b-hf"), of_length(4097));
  ASSERT_FALSE(program.notes.empty());
  EXPECT_EQ(program.notes.front(), "rows of 4097 tokens go beyond the 4096 positions that the model was made for");
}

}  // namespace

}  // namespace snug
