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

// Cells of a notebook that starts another program: what they write and run.
std::string notebook_of(std::initializer_list<std::string> cells) {
  std::string text;
  for (const std::string& cell : cells)
    text += std::string(text.empty() ? "" : ", ") + R"({"cell_type": "code", "source": ")" + cell + "\"}";
  return R"({"cells": [)" + text + "]}";
}

TEST(Notebooks, whose_python_trains_nothing_are_read_by_their_commands) {
  const ForeignRecipe written = foreign(
      notebook_of({R"(%%writefile run.yaml\nmodel_name_or_path: Qwen/Qwen2.5-0.5B\nfinetuning_type: lora\ncutoff_len: 512)",
                   R"(!pip install llamafactory \\\n   deepspeed)", R"(!llamafactory-cli train \\\n   run.yaml)"}),
      "n.ipynb");
  EXPECT_EQ(written.dialect, Dialect::llama_factory);
  EXPECT_EQ(written.models.front(), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(written.recipe.seq_len, 512);
  EXPECT_TRUE(says(written, "nothing in its Python trains: read by the commands of its cells"));

  const ForeignRecipe dumped = foreign(
      notebook_of({R"(args = dict(model_name_or_path='gpt2', stage='sft', finetuning_type='full', fp16=True,\n)"
                   R"(  per_device_train_batch_size=3)\njson.dump(args, open('run.json', 'w', encoding='utf-8'), indent=2))",
                   "!llamafactory-cli train run.json"}),
      "n.ipynb");
  EXPECT_EQ(dumped.models.front(), "gpt2");
  EXPECT_EQ(dumped.recipe.batch, 3);
  EXPECT_EQ(dumped.recipe.method, Method::full);

  const ForeignRecipe shell = foreign(
      notebook_of({R"(%%bash\ncd repo\ntrl sft --model_name_or_path gpt2 --per_device_train_batch_size 5)"}), "n.ipynb");
  EXPECT_EQ(shell.recipe.batch, 5);
  EXPECT_THROW(foreign(notebook_of({"!ls", "print(1)"}), "n.ipynb"), Error);
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
  for (const char* type : {"ChatGLMForConditionalGeneration", "Gemma2ForSequenceClassification",
                           "LlamaForTokenClassification", "GPT2LMHeadModel"}) {
    const ForeignRecipe recipe = foreign(std::string("model = ") + type +
                                             ".from_pretrained('THUDM/chatglm-6b')\n"
                                             "Trainer(model=model, args=TrainingArguments('o')).train()\n",
                                         "t.py");
    ASSERT_FALSE(recipe.models.empty()) << type;
    EXPECT_EQ(recipe.models.front(), "THUDM/chatglm-6b");
  }
}

TEST(Python, asks_what_the_card_can) {
  const std::string script =
      "def types():\n    if torch.cuda.get_device_capability()[0] >= 8:\n        return 'flash_attention_2', "
      "torch.bfloat16\n"
      "    return 'eager', torch.float16\nattention, kind = types()\n"
      "model = AutoModelForCausalLM.from_pretrained('gpt2', torch_dtype=kind, attn_implementation=attention)\n"
      "Trainer(model=model, args=TrainingArguments('o')).train()\n";
  EXPECT_EQ(key_named(foreign(script, "t.py"), "torch_dtype").value, "bfloat16");
}

}  // namespace
}  // namespace snug
