// What of a script trains: behind a switch, in functions of its own, beside cells that Python would not read.

#include <gtest/gtest.h>

#include "base/error.h"
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

// An adapter that was trained before is loaded with its base, in the bits that it is given.
TEST(PythonTraining, of_an_adapter_with_its_base_has_the_bits_it_is_loaded_in) {
  const std::string script =
      "from transformers import BitsAndBytesConfig, TrainingArguments\n"
      "config = BitsAndBytesConfig(load_in_4bit=True)\n"
      "base_model = 'tiiuae/falcon-7b'\n"
      "model = AutoPeftModelForCausalLM.from_pretrained('out/sft', quantization_config=config, is_trainable=True)\n"
      "trainer = DPOTrainer(model, None, args=TrainingArguments('o', per_device_train_batch_size=3)";
  for (const char* adapter : {")\n", ", peft_config=LoraConfig(r=64))\n"}) {
    const ForeignRecipe read = foreign(script + adapter, "t.py");
    EXPECT_EQ(value_of(read.recipe, "method"), "lora");
    EXPECT_EQ(value_of(read.recipe, "load_in_4bit"), "true") << adapter;
  }
}

// Rows that are joined and cut before a trainer sees them.
TEST(PythonTraining, on_rows_of_constant_length_has_that_length) {
  const std::string script =
      "parser.add_argument('--seq_length', type=int, default=768)\n"
      "args = parser.parse_args()\n"
      "model = AutoModelForCausalLM.from_pretrained('gpt2')\n"
      "data = ConstantLengthDataset(tokenizer, rows, infinite=True, seq_length=args.seq_length)\n"
      "trainer = SFTTrainer(model=model, args=TrainingArguments('o'), train_dataset=data";
  EXPECT_EQ(foreign(script + ")\n", "t.py").recipe.seq_len, 768);
  EXPECT_EQ(foreign(script + ", max_seq_length=None)\n", "t.py").recipe.seq_len, 768);
  EXPECT_EQ(foreign(script + ", max_seq_length=64)\n", "t.py").recipe.seq_len, 64);
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

// Settings of LLaMA-Factory's that a cell writes where no command hands them on.
TEST(Notebooks, that_only_write_settings_are_read_by_them) {
  const std::string dict =
      "settings = {'stage': 'sft', 'do_train': True, 'model_name_or_path': 'Qwen/Qwen3-0.6B',\n"
      "            'finetuning_type': 'lora', 'lora_rank': 12}\n";
  for (const char* dump : {"json.dump(settings, open(f'{HERE}/made/run.json', 'w'), indent=2)\n",
                           "with open('run.json', 'w') as f:\n    json.dump(settings, f)\n"}) {
    const ForeignRecipe recipe = foreign(dict + dump, "r.py");
    EXPECT_EQ(model_of(recipe), "Qwen/Qwen3-0.6B");
    EXPECT_EQ(recipe.recipe.lora.r, 12);
    EXPECT_EQ(recipe.dialect, Dialect::llama_factory);
  }
}

TEST(Notebooks, that_write_to_what_nothing_opens_train_nothing) {
  const std::string dict = "settings = {'stage': 'sft', 'do_train': True, 'model_name_or_path': 'Qwen/Qwen3-0.6B'}\n";
  std::string many;
  for (int i = 0; i < 3000; ++i) many += "json.dump(settings, f)\n";
  for (const std::string& dump : {std::string("json.dump(settings, f)\n"), std::string("json.dump(settings, f"), many})
    EXPECT_THROW(read_foreign_recipe(dict + dump, "r.py"), Error);
}

class PythonElsewhere : public RecipeFolder {};

// SageMaker's estimator runs a script with flags.
TEST_F(PythonElsewhere, a_job_of_an_estimator_is_its_command) {
  put("scripts/train.py",
      "parser.add_argument('--model_id')\nparser.add_argument('--rows', type=int, default=1)\nargs = parser.parse_args()\n"
      "model = AutoModelForCausalLM.from_pretrained(args.model_id)\n"
      "model = get_peft_model(model, LoraConfig(r=20))\n"
      "Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=args.rows)).train()\n");
  put("job.py",
      "model_id = 'Qwen/Qwen2.5-0.5B'\n"
      "given = {'model_id': model_id, 'rows': 6, 'hf_token': HfFolder.get_token()}\n"
      "job = HuggingFace(entry_point='train.py', source_dir='scripts', hyperparameters=given, instance_count=1)\n"
      "job.fit({'training': 's3://x'})\n");
  const ForeignRecipe recipe = read("job.py");
  EXPECT_EQ(model_of(recipe), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(recipe.recipe.batch, 6);
  EXPECT_EQ(recipe.recipe.lora.r, 20);
  EXPECT_TRUE(says(recipe, "nothing in its Python trains: read by the job that it starts"));
}

// Variables of the file that dotenv reads, of its example where it is not there.
TEST_F(PythonElsewhere, variables_stand_in_the_file_that_dotenv_reads) {
  const std::string script =
      "model = AutoModelForCausalLM.from_pretrained(os.getenv('MODEL_NAME'))\n"
      "rank = int(os.environ['LORA_RANK'])\nmodel = get_peft_model(model, LoraConfig(r=rank))\n"
      "Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=int(os.getenv('ROWS', 4)))).train()\n";
  put("README.md", "");
  put("src/train.py", "import dotenv\ndotenv.load_dotenv()\n" + script);
  put(".env.example",
      "# a comment with = in it\nMODEL_NAME='Qwen/Qwen2.5-0.5B'  # the base\nexport LORA_RANK = 28\r\nROWS=\nEMPTY\n=x");
  ForeignRecipe recipe = read("src/train.py");
  EXPECT_EQ(model_of(recipe), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(recipe.recipe.lora.r, 28);
  EXPECT_EQ(recipe.recipe.batch, 4);
  EXPECT_TRUE(says(recipe, "read beside it: .env.example"));
  put(".env", "MODEL_NAME=google/gemma-2b\nLORA_RANK=4 # few\nROWS=\"2\"\n");
  recipe = read("src/train.py");
  EXPECT_EQ(model_of(recipe), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.lora.r, 4);
  EXPECT_EQ(recipe.recipe.batch, 2);
  put("src/train.py", script);  // which reads no such file
  EXPECT_EQ(model_of(read("src/train.py")), "none");
}

// "class Wrapper(nn.Module)" calls nothing: what its objects are made with is what the calls of it give.
TEST_F(PythonElsewhere, a_class_that_is_made_of_another_is_given_what_its_calls_say) {
  put("model.py",
      "class Wrapper(nn.Module):\n    def __init__(self, model_id: str, rank):\n        super(Wrapper, self).__init__()\n"
      "        model = AutoModelForCausalLM.from_pretrained(model_id)\n"
      "        self.model = get_peft_model(model, LoraConfig(r=rank))\n");
  put("main.py",
      "from model import Wrapper\nwrapper = Wrapper('Qwen/Qwen2.5-0.5B', rank=20)\n"
      "Trainer(model=wrapper.model, args=TrainingArguments('o')).train()\n");
  const ForeignRecipe recipe = read("main.py");
  EXPECT_EQ(model_of(recipe), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(recipe.recipe.lora.r, 20);
}

// What is asked and what is answered, each cut by a limit of its own, are one row.
TEST(Python, rows_of_two_limits_are_as_long_as_both) {
  const std::string before =
      "longest_source, longest_target = 60, 150\n"
      "def row(text, output):\n    a = tokenizer(text, max_length=longest_source, truncation=True)\n";
  const std::string behind =
      "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B')\n"
      "Trainer(model=model, args=TrainingArguments('o')).train()\n";
  const auto length = [&](const std::string& second) { return foreign(before + second + behind, "r.py").recipe.seq_len; };
  EXPECT_EQ(length("    b = tokenizer(output, max_length=longest_target, truncation=True)\n"), 210);
  EXPECT_EQ(length("    b = tokenizer(output, max_length=100, truncation=True)\n"), 100);
  EXPECT_NO_THROW(length("    b = tokenizer(output, max_length=1e999, truncation=True)\n"));
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
