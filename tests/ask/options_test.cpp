#include "ask/options.h"

#include <gtest/gtest.h>

#include "ask/arguments.h"

namespace snug {

namespace {

Options parse(std::vector<std::string> words, const std::vector<std::string>& own, const OtherFlags& other = {}) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return parse_options(pointers, own, other);
}

std::string refusal(const std::vector<std::string>& words, const std::vector<std::string>& own,
                    const OtherFlags& other = {}) {
  try {
    parse(words, own, other);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "taken";
}

TEST(Options, a_value_stands_behind_its_flag_or_after_an_equals_sign) {
  const Options options = parse({"a", "--size", "3", "b", "--json", "--name=x=y", "--size=4"}, {"json", "size=", "name="});
  EXPECT_EQ(options.positional, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(options.has("json"));
  EXPECT_EQ(options.value("size"), "4");  // the last
  EXPECT_EQ(options.values("size"), (std::vector<std::string>{"3", "4"}));
  EXPECT_EQ(options.value("name"), "x=y");
  EXPECT_EQ(options.value("absent", "otherwise"), "otherwise");
  EXPECT_FALSE(options.has("absent"));
}

TEST(Options, dashes_and_underscores_are_the_same) {
  EXPECT_EQ(parse({"--output_dir", "x"}, {"output-dir="}).value("output-dir"), "x");
}

TEST(Options, a_flag_is_nobody_s_value_and_a_single_dash_is_no_flag) {
  EXPECT_EQ(refusal({"--size", "--json"}, {"json", "size="}), "--size needs a value");
  EXPECT_EQ(refusal({"--size"}, {"size="}), "--size needs a value");
  EXPECT_EQ(refusal({"--json=3"}, {"json"}), "--json takes no value");
  EXPECT_EQ(parse({"--size", "-3", "-"}, {"size="}).value("size"), "-3");
}

TEST(Options, an_unknown_flag_is_refused_with_the_one_that_was_meant_or_all) {
  EXPECT_EQ(refusal({"--outputdir", "x"}, {"json", "output-dir="}),
            "there is no flag --outputdir here; did you mean --output-dir?");
  EXPECT_EQ(refusal({"--what"}, {"json", "count=", "interval="}),
            "there is no flag --what here; there is --json, --count and --interval");
  EXPECT_EQ(refusal({"--x"}, {}), "there is no flag --x here");
  EXPECT_EQ(refusal({"--jsn"}, {"json", "gpu="}, takes_of_key), "there is no flag --jsn here; did you mean --json?");
}

TEST(Options, recipe_keys_take_what_their_type_says) {
  const Options options =
      parse({"--bf16", "model", "--packing", "false", "--lora_r", "4", "--resume-from-checkpoint"}, {"json"}, takes_of_key);
  EXPECT_EQ(options.positional, std::vector<std::string>{"model"});
  ASSERT_EQ(options.others.size(), 4U);
  EXPECT_EQ(options.others[0].value, "true");
  EXPECT_EQ(options.others[1].value, "false");
  EXPECT_EQ(options.others[2].name, "lora_r");  // as it was written
  EXPECT_EQ(options.others[3].value, "true");
  EXPECT_EQ(refusal({"--lora-r", "--bf16"}, {}, takes_of_key), "--lora-r needs a value");
  const std::string message = refusal({"--lora-rr", "4"}, {}, takes_of_key);
  EXPECT_NE(message.find("did you mean 'lora_r'?"), std::string::npos) << message;
}

}  // namespace

}  // namespace snug
