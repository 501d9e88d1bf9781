// What of a script trains: behind a switch, in functions of its own, beside cells that Python would not read.

#include <gtest/gtest.h>

#include "recipe/support_dialects.h"

namespace snug {
namespace {

// Jupyter runs the other cells all the same.
TEST(Notebooks, with_a_cell_that_is_no_python_are_read_without_it) {
  const ForeignRecipe recipe = foreign(
      R"x({"cells": [{"cell_type": "code", "source": "PATH = \"a\" \"\n"}, {"cell_type": "code", "source": )x"
      R"x("m = AutoModelForCausalLM.from_pretrained('google/gemma-2b')\nt = Trainer(m, TrainingArguments('o'))"}]})x",
      "n.ipynb");
  ASSERT_FALSE(recipe.models.empty());
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_TRUE(says(recipe, "a cell is left out: cell 1:1: a string does not end (is this Python?)"));
}

TEST(Python, trains_where_its_switch_for_training_is_taken_as_given) {
  const std::string script =
      "parser = argparse.ArgumentParser()\nparser.add_argument('--do_train', action='store_true')\n"
      "parser.add_argument('--rank', type=int, default=12)\nargs = parser.parse_args()\nif args.do_train:\n"
      "    model = AutoModelForCausalLM.from_pretrained('google/gemma-2b')\n"
      "    model = get_peft_model(model, LoraConfig(r=args.rank))\n"
      "    Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=3)).train()\n";
  const ForeignRecipe recipe = foreign(script, "t.py");
  EXPECT_EQ(recipe.recipe.batch, 3);
  EXPECT_EQ(recipe.recipe.lora.r, 12);
  EXPECT_TRUE(says(recipe, "--do_train is taken as given: without it the script trains nothing"));
}

// TRL has a function of that name that options decide over.
TEST(Python, adapters_that_a_function_of_its_own_makes_count) {
  const std::string own =
      "def get_peft_config():\n    return LoraConfig(r=12)\n"
      "model = AutoModelForCausalLM.from_pretrained('google/gemma-2b')\npeft_config = get_peft_config()\n"
      "SFTTrainer(model=model, args=SFTConfig('o'), peft_config=peft_config).train()\n";
  EXPECT_EQ(foreign(own, "t.py").recipe.method, Method::lora);
  EXPECT_EQ(foreign(own, "t.py").recipe.lora.r, 12);
  // The trainer stands above what calls it.
  const std::string above =
      "def stage(model):\n    Trainer(model=model, args=TrainingArguments('o')).train()\n"
      "def main():\n    model = AutoModelForCausalLM.from_pretrained('google/gemma-2b')\n"
      "    model = get_peft_model(model, LoraConfig(r=20))\n    stage(model)\nmain()\n";
  EXPECT_EQ(foreign(above, "t.py").recipe.method, Method::lora);
  EXPECT_EQ(foreign(above, "t.py").recipe.lora.r, 20);
}

TEST(Python, models_of_any_class_are_loaded) {
  const ForeignRecipe recipe = foreign(
      "model = ChatGLMForConditionalGeneration.from_pretrained('THUDM/chatglm-6b')\n"
      "Trainer(model=model, args=TrainingArguments('o')).train()\n",
      "t.py");
  ASSERT_FALSE(recipe.models.empty());
  EXPECT_EQ(recipe.models.front(), "THUDM/chatglm-6b");
}

}  // namespace
}  // namespace snug
