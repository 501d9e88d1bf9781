#include "recipe/key_values.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace snug {

namespace {

KeyGrammar of(std::string_view key) { return grammar_of(*find_key(key)); }

TEST(KeyGrammar, reads_words_ranges_and_names_of_the_table) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(of("bf16"), (KeyGrammar{.words = {"true", "false"}}));
  EXPECT_EQ(of("max_length"), (KeyGrammar{.words = {"auto"}, .numbers = NumberRange{.least = 2}}));
  EXPECT_EQ(of("lora_alpha").numbers, (NumberRange{.least = 0, .above = true}));
  EXPECT_EQ(of("lora_dropout").numbers, (NumberRange{.least = 0, .most = 1, .below = true}));
  EXPECT_EQ(of("initial_scale_power").numbers, (NumberRange{.least = 0, .most = 24}));
  EXPECT_EQ(of("max_steps"), (KeyGrammar{.words = {"-1"}, .numbers = NumberRange{.least = 1}}));
  EXPECT_EQ(of("output_dir"), (KeyGrammar{.names = "DIRECTORY", .open = true}));
  EXPECT_EQ(of("model"), (KeyGrammar{.names = "NAME", .open = true}));
  EXPECT_EQ(of("memory"), (KeyGrammar{.words = {"auto"}, .open = true}));
  EXPECT_EQ(of("lora_target_modules"), (KeyGrammar{.words = {"all-linear"}, .open = true}));
  EXPECT_EQ(of("checkpoint_parts").words, (Words{"all", "norms", "activations", "attention", "projections"}));
  EXPECT_EQ(of("quantization_bit").words, (Words{"4", "8", "none"}));
}

TEST(KeyGrammar, lists_are_told_by_the_rows_themselves) {
  for (const char* key : {"data", "eval_data", "lora_target_modules", "checkpoint_layers", "report_to"})
    EXPECT_TRUE(takes_list(*find_key(key))) << key;
  for (const char* key : {"output_dir", "bf16", "max_length", "optim"}) EXPECT_FALSE(takes_list(*find_key(key))) << key;
}

// What editors and shells offer, the program takes.
TEST(KeyGrammar, every_word_that_it_tells_of_is_taken) {
  int words = 0;
  for (const Key& key : recipe_keys()) {
    std::vector<std::string> told = grammar_of(key).words;
    told.insert(told.end(), key.words.begin(), key.words.end());
    for (std::string word : told) {
      if (key.type == KeyType::map) word += "=1";
      Recipe recipe;
      EXPECT_NO_THROW(key.set(recipe, std::vector<std::string>{word})) << key.name << ": " << word;
      ++words;
    }
  }
  EXPECT_GT(words, 150);
}

// A row that says neither words, nor numbers, nor what it names, would leave everybody guessing.
TEST(KeyGrammar, every_row_says_what_may_be_written) {
  for (const Key& key : recipe_keys()) {
    const KeyGrammar grammar = grammar_of(key);
    EXPECT_TRUE(!grammar.words.empty() || grammar.numbers || grammar.open) << key.name << ": " << key.values;
    const bool numeric = key.type == KeyType::integer || key.type == KeyType::number;
    EXPECT_TRUE(!numeric || grammar.numbers || !grammar.words.empty()) << key.name << ": " << key.values;
    for (const std::string& word : grammar.words) EXPECT_EQ(word.find(' '), std::string::npos) << key.name << ": " << word;
  }
}

// What stands at the edges of a range is taken, what lies beyond is refused.
TEST(KeyGrammar, ranges_are_those_that_the_rows_keep) {
  const auto takes = [](const Key& key, double value) {
    Recipe recipe;
    try {
      key.set(recipe, std::vector<std::string>{std::to_string(static_cast<int64_t>(value))});
      validate(recipe);
    } catch (const Error&) {
      return false;
    }
    return true;
  };
  for (const Key& key : recipe_keys()) {
    const auto numbers = grammar_of(key).numbers;
    if (!numbers || !numbers->least || key.name == "save_total_limit") continue;  // whose 0 means none
    EXPECT_FALSE(takes(key, *numbers->least - (numbers->above ? 0 : 1))) << key.name << ": " << key.values;
    if (numbers->most) {
      EXPECT_FALSE(takes(key, *numbers->most + (numbers->below ? 0 : 1))) << key.name << ": " << key.values;
    }
  }
}

}  // namespace

}  // namespace snug
