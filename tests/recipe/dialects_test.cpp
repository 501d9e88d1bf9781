#include <algorithm>

#include "base/error.h"
#include "recipe/yaml.h"
#include "support_dialects.h"

namespace snug {
namespace {

std::string refusal(const std::string& text, const std::string& where) {
  try {
    static_cast<void>(read_foreign_recipe(text, where));
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

bool says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos || (ADD_FAILURE() << message << " does not say " << part, false);
}

TEST(Dialects, OurOwnRecipesAreNoneOfThem) {
  EXPECT_FALSE(read_foreign_recipe("model_name_or_path: a/b\ndata: rows.jsonl\nlora_r: 8\nmax_length: 512\n", "r.yaml"));
  EXPECT_FALSE(read_foreign_recipe("model: a/b\nmethod: qlora\nper_device_train_batch_size: 2\n", "r.yaml"));
  EXPECT_FALSE(read_foreign_recipe(write_recipe_yaml({}), "r.yaml"));
  EXPECT_FALSE(read_foreign_recipe("", "r.yaml"));
  EXPECT_FALSE(read_foreign_recipe("{\"model_type\": \"llama\", \"hidden_size\": 64}", "config.json"));
}

TEST(Dialects, DefaultsOfAxolotl) {
  const ForeignRecipe read = foreign("base_model: a/b\ndatasets:\n  - path: d\n    type: alpaca\nadapter: qlora\n");
  EXPECT_EQ(read.dialect, Dialect::axolotl);
  EXPECT_EQ(read.recipe.method, Method::lora);
  EXPECT_TRUE(read.recipe.quantize.in_4bit);
  EXPECT_EQ(read.recipe.batch, 1);
  EXPECT_EQ(read.recipe.seq_len, 512);
  EXPECT_FALSE(read.recipe.packing);
  EXPECT_FALSE(read.recipe.gradient_checkpointing);
  EXPECT_EQ(read.data, std::vector<std::string>{"d"});
}

TEST(Dialects, AxolotlsProductOfBatchAndAccumulation) {
  const ForeignRecipe read = foreign(
      "base_model: a/b\ndatasets: []\nmicro_batch_size: 4\nbatch_size: 32\nval_set_size: 0\nadapter: lora\n"
      "gradient_checkpointing: offload\neval_batch_size: 2\n");
  EXPECT_EQ(read.recipe.accumulation, 8);
  EXPECT_TRUE(read.recipe.gradient_checkpointing);
  EXPECT_EQ(read.eval_batch, 2);
}

TEST(Dialects, DefaultsOfLlamaFactory) {
  const ForeignRecipe read =
      foreign("model_name_or_path: a/b\nstage: sft\nfinetuning_type: lora\ndataset: x\nlora_rank: 24\n");
  EXPECT_EQ(read.dialect, Dialect::llama_factory);
  EXPECT_EQ(read.recipe.lora.r, 24);
  EXPECT_EQ(read.recipe.lora.alpha, 48);
  EXPECT_EQ(read.recipe.seq_len, 2048);
  EXPECT_EQ(read.recipe.batch, 8);
  EXPECT_TRUE(read.recipe.gradient_checkpointing);
  EXPECT_EQ(read.recipe.lora.target_modules, std::vector<std::string>{"all-linear"});
}

TEST(Dialects, LlamaFactoryChecksPointsWhateverTheTrainersKeySays) {
  const std::string text = "model_name_or_path: a/b\nstage: sft\nfinetuning_type: lora\ndataset: x\n";
  EXPECT_TRUE(foreign(text + "gradient_checkpointing: false\n").recipe.gradient_checkpointing);
  EXPECT_FALSE(foreign(text + "disable_gradient_checkpointing: true\n").recipe.gradient_checkpointing);
}

TEST(Dialects, StagesBesideSftTouchMemory) {
  for (const char* stage : {"dpo", "kto", "ppo", "rm"}) {
    const ForeignRecipe read =
        foreign(std::string("model_name_or_path: a/b\nfinetuning_type: lora\ndataset: x\nstage: ") + stage);
    EXPECT_EQ(read.stage, stage);
    EXPECT_EQ(key_named(read, "stage").fate, KeyFate::touches_memory);
    EXPECT_FALSE(read.refusals(true).empty());
  }
  const ForeignRecipe dpo = foreign("model_name_or_path: a/b\ndataset_name: x\nbeta: 0.1\nmax_prompt_length: 512\n");
  EXPECT_EQ(dpo.stage, "dpo");
  EXPECT_EQ(foreign("model_name_or_path: a/b\ndataset_name: x\nnum_generations: 8\n").stage, "grpo");
  const std::string rows = "max_prompt_length: 256\nmax_completion_length: 1024\n";  // of a prompt and what is generated
  EXPECT_EQ(foreign("model_name_or_path: a/b\ndataset_name: x\nnum_generations: 8\n" + rows).recipe.seq_len, 1280);
}

TEST(Dialects, DefaultsOfTrl) {
  const ForeignRecipe read = foreign("model_name_or_path: a/b\ndataset_name: d/e\nuse_peft: true\n");
  EXPECT_EQ(read.dialect, Dialect::trl);
  EXPECT_EQ(read.recipe.batch, 8);
  EXPECT_EQ(read.recipe.seq_len, 1024);
  EXPECT_EQ(read.recipe.lora.r, 16);
  EXPECT_EQ(read.recipe.lora.alpha, 32);
  EXPECT_TRUE(read.recipe.bf16);
  EXPECT_TRUE(read.recipe.gradient_checkpointing);
  EXPECT_EQ(foreign("model_name_or_path: a/b\ndataset_name: d/e\nlearning_rate: 1e-5\n").recipe.method, Method::full);
}

TEST(Dialects, HalfPrecisionOfEachKind) {
  const std::string trl = "model_name_or_path: a/b\ndataset_name: d/e\n";
  EXPECT_TRUE(foreign(trl + "fp16: true\n").recipe.fp16);
  EXPECT_FALSE(foreign(trl + "fp16: true\n").recipe.bf16);
  EXPECT_EQ(foreign(trl + "torch_dtype: bfloat16\nbf16: true\n").recipe.master_weights, std::optional(false));
  EXPECT_EQ(foreign(trl + "bf16: true\n").recipe.master_weights, std::nullopt);
  EXPECT_TRUE(foreign("base_model: a/b\nsequence_len: 8\nadapter: lora\nbf16: auto\n").recipe.bf16);
  EXPECT_EQ(key_named(foreign(trl + "tf32: true\n"), "tf32").fate, KeyFate::without_effect);
}

TEST(Dialects, OptimizersAndTheOnesThatAreNotPlanned) {
  const std::string trl = "model_name_or_path: a/b\ndataset_name: d/e\noptim: ";
  const auto optim = [&](const char* name) { return value_of(foreign(trl + name + "\n").recipe, "optim"); };
  EXPECT_EQ(optim("adamw_torch_fused"), "adamw_torch");
  EXPECT_EQ(optim("adamw_bnb_8bit"), "adamw_8bit");
  EXPECT_EQ(optim("paged_adamw_8bit"), "paged_adamw_8bit");
  EXPECT_EQ(optim("paged_adamw_32bit"), "paged_adamw_32bit");
  EXPECT_EQ(optim("adafactor"), "adafactor");
  EXPECT_EQ(optim("lion_8bit"), "lion_8bit");
  for (const char* name : {"galore_adamw", "adamw_torch_4bit", "apollo_adamw", "schedule_free_adamw"})
    EXPECT_EQ(key_named(foreign(trl + name + "\n"), "optim").fate, KeyFate::touches_memory) << name;
}

TEST(Dialects, TargetsAsListsWordsAndPatterns) {
  const std::string swift = "model: a/b\ntrain_type: lora\ndataset: x\nmax_length: 64\nlora_rank: 8\ntarget_modules: ";
  EXPECT_EQ(foreign(swift + "all-linear\n").recipe.lora.target_modules, std::vector<std::string>{"all-linear"});
  EXPECT_EQ(foreign(swift + "[q_proj, v_proj]\n").recipe.lora.target_modules,
            (std::vector<std::string>{"q_proj", "v_proj"}));
  EXPECT_EQ(foreign(swift + "'.*layers.*(self_attn|mlp)\\.(q|k|up)_proj$'\n").recipe.lora.target_modules,
            (std::vector<std::string>{"q_proj", "k_proj", "up_proj"}));
  EXPECT_EQ(key_named(foreign(swift + "'.*q_proj$'\n"), "target_modules").fate, KeyFate::touches_memory);
}

TEST(Dialects, TorchtuneByItsComponents) {
  const ForeignRecipe read = foreign(R"(output_dir: /tmp/x
model:
  _component_: torchtune.models.llama3_1.qlora_llama3_1_8b
  lora_attn_modules: ['q_proj', 'v_proj', 'output_proj']
  apply_lora_to_mlp: True
  apply_lora_to_output: True
  lora_rank: 16
  lora_alpha: 32
tokenizer:
  max_seq_len: ${length}
length: 4096
dataset: {_component_: torchtune.datasets.alpaca_dataset, packed: True}
batch_size: 2
optimizer: {_component_: bitsandbytes.optim.PagedAdamW8bit, lr: 2e-5}
optimizer_in_bwd: False
enable_activation_checkpointing: True
enable_activation_offloading: True
dtype: bf16
)");
  EXPECT_EQ(read.dialect, Dialect::torchtune);
  EXPECT_EQ(read.recipe.model, "meta-llama/Llama-3.1-8B-Instruct");
  EXPECT_TRUE(read.recipe.quantize.in_4bit);
  EXPECT_EQ(read.recipe.lora.target_modules,
            (std::vector<std::string>{"q_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head"}));
  EXPECT_EQ(read.recipe.seq_len, 4096);
  EXPECT_TRUE(read.recipe.packing);
  EXPECT_EQ(value_of(read.recipe, "optim"), "paged_adamw_8bit");
  EXPECT_EQ(read.named(KeyFate::touches_memory), std::vector<std::string>{"enable_activation_offloading"});
  EXPECT_TRUE(read.named(KeyFate::unknown).empty());
}

TEST(Dialects, UnslothsOwnFile) {
  const ForeignRecipe read = foreign(R"(model: unsloth/llama-3-8b-bnb-4bit
data:
  dataset: yahma/alpaca-cleaned
training:
  training_type: lora
  max_seq_length: 4096
  gradient_checkpointing: unsloth
lora:
  lora_alpha: 32
)");
  EXPECT_EQ(read.dialect, Dialect::unsloth);
  EXPECT_EQ(read.recipe.lora.r, 64);  // unsloth_cli's default
  EXPECT_EQ(read.recipe.lora.alpha, 32);
  EXPECT_EQ(read.recipe.batch, 2);
  EXPECT_EQ(read.recipe.accumulation, 4);
  EXPECT_TRUE(read.recipe.gradient_checkpointing);
  EXPECT_TRUE(read.recipe.quantize.in_4bit);
  EXPECT_EQ(value_of(read.recipe, "optim"), "adamw_8bit");
}

TEST(ShellRecipes, SwiftWithVariablesListsAndLineEnds) {
  const ForeignRecipe read = foreign(R"(#!/bin/bash
MODEL="Qwen/Qwen2.5-7B-Instruct"   # the model
LEN=${LEN:-2048}
COMMON=(
    --lora_rank 8   # small
    --lora_alpha 32
)
CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 \
swift sft \
    --model $MODEL --train_type lora \
    --dataset 'AI-ModelScope/alpaca-gpt4-data-zh#500' \
              'swift/self-cognition#500' \
    "${COMMON[@]}" \
    --max_length "$LEN" \
    --quant_bits=4 \
    --deepspeed zero2 > log.txt 2>&1
)",
                                     "train.sh");
  EXPECT_EQ(read.dialect, Dialect::swift);
  EXPECT_EQ(read.recipe.model, "Qwen/Qwen2.5-7B-Instruct");
  EXPECT_EQ(read.data, (std::vector<std::string>{"AI-ModelScope/alpaca-gpt4-data-zh#500", "swift/self-cognition#500"}));
  EXPECT_EQ(read.recipe.lora.r, 8);
  EXPECT_EQ(read.recipe.seq_len, 2048);
  EXPECT_TRUE(read.recipe.quantize.in_4bit);
  EXPECT_EQ(read.gpus, 2);
  EXPECT_EQ(read.sharding, Sharding::zero2);
  EXPECT_EQ(read.recipe.accumulation, 8);  // 16 sequences over two devices
  EXPECT_TRUE(read.named(KeyFate::unknown).empty());
}

TEST(ShellRecipes, AccelerateLaunchOfTrl) {
  const ForeignRecipe read = foreign(
      "accelerate launch --config_file=configs/deepspeed_zero3.yaml --num_processes 8 examples/scripts/sft.py \\\n"
      "  --model_name_or_path=\"meta-llama/Llama-2-7b-hf\" --dataset_name trl-lib/Capybara \\\n"
      "  --per_device_train_batch_size=8 --load_in_4bit --use_peft --lora_target_modules q_proj k_proj \\\n"
      "  --gradient_checkpointing False --packing\n",
      "run.sh");
  EXPECT_EQ(read.dialect, Dialect::trl);
  EXPECT_EQ(read.recipe.method, Method::lora);
  EXPECT_EQ(read.recipe.lora.target_modules, (std::vector<std::string>{"q_proj", "k_proj"}));
  EXPECT_FALSE(read.recipe.gradient_checkpointing);
  EXPECT_TRUE(read.recipe.packing);
  EXPECT_EQ(read.gpus, 8);
  EXPECT_EQ(read.sharding, Sharding::zero3);
}

TEST(ShellRecipes, PeftsExamplesAreQlora) {
  const char* const start =
      "torchrun --nproc_per_node 8 train.py --model_name_or_path a/b --dataset_name c/d --chat_template_format chatml \\\n"
      "  --add_special_tokens False --append_concat_token False --splits train,test --max_seq_len 2048 --bf16 True \\\n"
      "  --use_reentrant False --use_flash_attn True --use_peft_lora True --use_4bit_quantization True --use_nested_quant "
      "True \\\n"
      "  --bnb_4bit_compute_dtype bfloat16 --bnb_4bit_quant_storage_dtype bfloat16";
  const ForeignRecipe read = foreign(std::string(start) + " --lora_r 8 --lora_target_modules all-linear\n", "run.sh");
  EXPECT_EQ(read.recipe.method, Method::lora);
  EXPECT_TRUE(read.recipe.quantize.in_4bit);
  EXPECT_TRUE(read.recipe.quantize.double_quant);
  EXPECT_EQ(read.recipe.seq_len, 2048);
  EXPECT_EQ(read.recipe.lora.r, 8);
  EXPECT_EQ(read.recipe.lora.target_modules, std::vector<std::string>{"all-linear"});
  EXPECT_EQ(read.gpus, 8);
  EXPECT_TRUE(read.named(KeyFate::unknown).empty());
  const ForeignRecipe plain = foreign(std::string(start) + "\n", "run.sh");  // as the script has it
  EXPECT_EQ(plain.recipe.lora.r, 64);
  EXPECT_EQ(plain.recipe.lora.alpha, 16);
  EXPECT_EQ(plain.recipe.lora.target_modules.size(), 7U);
}

TEST(ShellRecipes, LlamaFactorysCommand) {
  const ForeignRecipe read = foreign(
      "FORCE_TORCHRUN=1 llamafactory-cli train --stage sft --model_name_or_path a/b --dataset d --finetuning_type lora "
      "--fp16 --quantization_bit 4\n",
      "run.sh");
  EXPECT_EQ(read.dialect, Dialect::llama_factory);
  EXPECT_TRUE(read.recipe.fp16);
  EXPECT_TRUE(read.recipe.quantize.in_4bit);
}

TEST(ShellRecipes, TuneRunWithOverrides) {
  const ForeignRecipe read = foreign(
      "tune run --nproc_per_node 2 lora_finetune_distributed --config llama3_1/8B_lora batch_size=4 \\\n"
      "  gradient_accumulation_steps=8 model.lora_rank=16 enable_activation_checkpointing=False "
      "tokenizer.max_seq_len=4096\n",
      "run.sh");
  EXPECT_EQ(read.dialect, Dialect::torchtune);
  EXPECT_EQ(read.recipe.model, "meta-llama/Llama-3.1-8B-Instruct");
  EXPECT_EQ(read.recipe.method, Method::lora);
  EXPECT_EQ(read.recipe.batch, 4);
  EXPECT_EQ(read.recipe.lora.r, 16);
  EXPECT_EQ(read.recipe.seq_len, 4096);
  EXPECT_FALSE(read.recipe.gradient_checkpointing);
  EXPECT_EQ(read.gpus, 2);
}

TEST(ShellRecipes, PlainScriptsOfTheTrainer) {
  const ForeignRecipe read = foreign(
      "ARGS=\"--bf16 True --tf32 True\"\ntorchrun --nproc_per_node=4 train.py --model_name_or_path x/y --data_path d.json "
      "$ARGS "
      "--per_device_train_batch_size 2 --fsdp \"full_shard auto_wrap\" --model_max_length 2048\n",
      "run.sh");
  EXPECT_EQ(read.dialect, Dialect::hugging_face);
  EXPECT_TRUE(read.recipe.bf16);
  EXPECT_FALSE(read.recipe.gradient_checkpointing);
  EXPECT_EQ(read.sharding, Sharding::fsdp);
  EXPECT_EQ(read.gpus, 4);
}

TEST(ShellRecipes, ReckonsWithWholeNumbersAndItsOwnVariables) {
  const std::string head = "N=4\nswift sft --model a/b --train_type lora --dataset x --gradient_accumulation_steps ";
  EXPECT_EQ(foreign(head + "$(expr 64 / $N)\n", "run.sh").recipe.accumulation, 16);
  EXPECT_EQ(foreign(head + "$((32 / N / 2))\n", "run.sh").recipe.accumulation, 4);
  EXPECT_EQ(foreign(head + "\"$(expr 8 \\* $N)\"\n", "run.sh").recipe.accumulation, 32);
  EXPECT_EQ(key_named(foreign(head + "$((1 / 0))\n", "run.sh"), "gradient_accumulation_steps").fate,
            KeyFate::touches_memory);
}

TEST(ShellRecipes, ArraysAreLookedUpAndDefaultsMayBeVariables) {
  const ForeignRecipe recipe = foreign(
      "MODELS=(google/gemma-2b Qwen/Qwen2.5-0.5B)\nN=1\nBASE=3\nfor i in \"${!MODELS[@]}\"; do\n  MODEL=${MODELS[$i]}\n"
      "  python run_clm.py --model_name_or_path $MODEL --per_device_train_batch_size ${ROWS:-$BASE} --seed ${MODELS[$N]} "
      "\\\n"
      "    --gradient_accumulation_steps ${STEPS:-${BASE}} --max_steps 4\ndone\n",
      "run.sh");
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.batch, 3);
  EXPECT_EQ(recipe.recipe.accumulation, 3);
  EXPECT_EQ(key_named(recipe, "seed").value, "Qwen/Qwen2.5-0.5B");
}

// As MiniLLM's scripts and OpenRLHF's are written.
TEST(ShellRecipes, CommandsAreBuiltUpInVariables) {
  ForeignRecipe recipe = foreign(
      "OPTS=\"\"\nOPTS+=\" --model_name_or_path google/gemma-2b\"\nOPTS+=\" --per_device_train_batch_size 3 --max_steps "
      "4\"\n"
      "CMD=\"torchrun --nproc_per_node 2 train.py ${OPTS}\"\necho ${CMD}\n${CMD} 2>&1 | tee log\n",
      "run.sh");
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.batch, 3);
  EXPECT_EQ(recipe.gpus, 2);
  recipe = foreign(
      "read -r -d '' training_commands <<EOF\nopenrlhf.cli.train_sft \\\n  --max_len 2048 \\\n  --pretrain google/gemma-2b "
      "\\\n"
      "  --train_batch_size 256 \\\n  --micro_train_batch_size 2 --max_epochs 1 --bf16\nEOF\n"
      "if [[ ${1} != \"slurm\" ]]; then\n  deepspeed --include localhost:0,1,2,3 --module $training_commands\nfi\n",
      "run.sh");
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.batch, 2);
  EXPECT_EQ(recipe.recipe.accumulation, 32);
  EXPECT_EQ(recipe.recipe.seq_len, 2048);
}

TEST(ShellRecipes, AProgramThatNobodyKnowsIsReadByItsFlags) {
  const ForeignRecipe recipe = foreign(
      "petro-train --model_name_or_path google/gemma-2b --per_device_train_batch_size 3 --learning_rate 1e-4 --output_dir "
      "x\n",
      "run.sh");
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.batch, 3);
  const ForeignRecipe verb =
      foreign("align-cli dpo --model_name_or_path google/gemma-2b --bf16 True --output_dir x\n", "r.sh");
  EXPECT_EQ(verb.models.front(), "google/gemma-2b");
  EXPECT_TRUE(verb.recipe.bf16);
  EXPECT_THROW(read_foreign_recipe("align-cli serve --model_name_or_path google/gemma-2b --output_dir x\n", "r.sh"), Error);
}

TEST(ShellRecipes, WhichFileHoldsTheKeysIsSaid) {
  const ForeignRecipe read = foreign("swift sft --config train.yaml\n", "run.sh");
  ASSERT_FALSE(read.notes.empty());
  EXPECT_TRUE(std::any_of(read.notes.begin(), read.notes.end(),
                          [](const std::string& note) { return note == "the keys are in train.yaml: give that file"; }));
}

TEST(ShellRecipes, WhatOnlyThePythonScriptSaysIsTold) {
  const std::string head = "torchrun train.py --model_name_or_path a/b-1b --learning_rate 1 ";
  EXPECT_TRUE(says(foreign(head + "\n", "run.sh"), "no flag says method, max_length: train.py's own defaults are not read"));
  EXPECT_TRUE(says(foreign(head + "--use_peft --max_length 64\n", "run.sh"),
                   "no flag says lora_r: train.py's own defaults are not read"));
  const ForeignRecipe all = foreign(head + "--lora_r 8 --model_max_length 64\n", "run.sh");
  EXPECT_TRUE(std::ranges::none_of(all.notes, [](const std::string& note) { return note.starts_with("no flag says"); }));
}

// Scripts like Alpaca-LoRA's finetune.py: rows of a step and rows at once, of which accumulation follows.
TEST(ShellRecipes, LikeAlpacaLorasSayABaseModelAndTwoBatches) {
  const ForeignRecipe read = foreign(
      "python finetune.py --base_model Qwen/Qwen2.5-7B --batch_size 128 --micro_batch_size 4 --output_dir out\n", "run.sh");
  EXPECT_EQ(read.models.front(), "Qwen/Qwen2.5-7B");
  EXPECT_EQ(read.recipe.batch, 4);
  EXPECT_EQ(read.recipe.accumulation, 32);
  const ForeignRecipe alone =
      foreign("python finetune.py --base_model a/b --micro_batch_size 2 --gradient_accumulation_steps 3\n", "run.sh");
  EXPECT_EQ(alone.recipe.batch, 2);
  EXPECT_EQ(alone.recipe.accumulation, 3);
}

TEST(ShellRecipes, WhatOnlyAShellKnowsIsTold) {
  const ForeignRecipe read =
      foreign("swift sft --model a/b --train_type lora --per_device_train_batch_size $(nproc) \"${MORE[@]}\"\n", "run.sh");
  EXPECT_EQ(key_named(read, "per_device_train_batch_size").fate, KeyFate::touches_memory);
  EXPECT_FALSE(read.notes.empty());
  says(refusal("echo hello\n", "run.sh"), "no command of the script trains");
}

// Anchors, and "<<", below which a file's own keys hold wherever they stand.
TEST(YamlRecipes, AliasesAreWhatTheyStandFor) {
  const std::string common =
      "common: &common\n  micro_batch_size: 3\n  sequence_len: 640\n  lora_target_modules: [q_proj]\n";
  const ForeignRecipe plain = foreign(
      "name: &name Qwen/Qwen2.5-0.5B\nbase_model: *name\ntokenizer: *name\nadapter: lora\ndatasets: []\nlora_r: &r 4\n"
      "lora_alpha: *r\nwanted: &t [q_proj, v_proj]\nlora_target_modules: *t\n",
      "r.yaml");
  EXPECT_EQ(plain.models.front(), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(plain.recipe.lora.alpha, 4);
  EXPECT_EQ(plain.recipe.lora.target_modules, (std::vector<std::string>{"q_proj", "v_proj"}));
  const std::string rest = "base_model: a/b\nadapter: lora\ndatasets: []\n";
  for (const char* merge : {"<<: *common\nmicro_batch_size: 5\n", "micro_batch_size: 5\n<<: *common\n",
                            "micro_batch_size: 5\n<<: [*common, *other]\n",
                            "<<: {micro_batch_size: 7, sequence_len: 640, "
                            "lora_target_modules: [q_proj]}\nmicro_batch_size: 5\n"}) {
    const ForeignRecipe merged = foreign(common + "other: &other {sequence_len: 32}\n" + rest + merge, "r.yaml");
    EXPECT_EQ(merged.recipe.batch, 5) << merge;
    EXPECT_EQ(merged.recipe.seq_len, 640) << merge;
    EXPECT_EQ(merged.recipe.lora.target_modules, std::vector<std::string>{"q_proj"}) << merge;
  }
  // What an alias brings is not changed through it.
  const std::string text = common + rest + "<<: *common\n";
  const RecipePatch patch = change_foreign_recipe(text, "r.yaml", {{{"per_device_train_batch_size", "1"}}});
  EXPECT_EQ(foreign(patch.text, "r.yaml").recipe.batch, 1);
  EXPECT_NE(patch.text.find(common), std::string::npos);
}

TEST(HostileRecipes, AreRefusedInBoundedTime) {
  const std::string head = "base_model: a\ndatasets: []\nadapter: lora\n";
  std::string aliases = head + "a0: &a0 [" + std::string(4000, 'x') + "]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    std::string list = below;
    for (int j = 0; j < 9; ++j) list += ", " + below;
    const std::string name = "a" + std::to_string(i);
    aliases += name + ": &" + name + " [" + list + "]\n";
  }
  says(refusal(aliases, "r.yaml"), "aliases stand for too much");
  says(refusal(head + "a: &a\n  b: *a\n", "r.yaml"), "an alias");
  says(refusal(head + "deep: " + std::string(100, '[') + std::string(100, ']') + "\n", "r.yaml"), "nested too deeply");
  says(refusal(std::string((1 << 20) + 2, 'a'), "r.yaml"), "larger than 1 MiB");
  says(refusal("a: b\n---\nc: d\n", "r.yaml"), "several YAML documents");
  says(refusal("a: [b\n", "r.yaml"), "not valid YAML");
  says(refusal("{\"a\": 1, // no\n \"b\": 2}", "r.json"), "JSON has no comments");
  says(refusal("{\"a\": 1,\n}", "r.json"), "a comma stands after the last value");
  says(refusal("{\"a\": " + std::string(100, '[') + "}", "r.json"), "nested too deeply");
  std::string bomb = "A=aaaaaaaaaaaaaaaa\n";
  for (int i = 0; i < 40; ++i) bomb += "A=$A$A\n";
  says(refusal(bomb + "swift sft --model $A\n", "r.sh"), "too long");
}

TEST(Dialects, AnEmptyKeyIsToldAsItIsWritten) {
  const auto recipe =
      read_foreign_recipe(R"({"model": "a/b", "tuner_type": "lora", "dataset": ["x"], "max_length": 64, "": 4})", "a.json");
  ASSERT_TRUE(recipe);
  EXPECT_EQ(recipe->named(KeyFate::unknown), std::vector<std::string>{"\"\""});
}

TEST(Dialects, KeysGivenTwiceAreReadAsPythonReadsThem) {
  const ForeignRecipe read =
      foreign("base_model: a/b\nsequence_len: 8\nadapter: lora\nmicro_batch_size: 2\nmicro_batch_size: 3\n");
  EXPECT_EQ(read.recipe.batch, 3);
  EXPECT_FALSE(read.notes.empty());
}

TEST(Dialects, TheLineForPeopleNamesWhatIsNotPlanned) {
  const ForeignRecipe read = foreign("base_model: a/b\nsequence_len: 8\nadapter: lora\nrelora: true\nmine: 3\n");
  EXPECT_EQ(describe(read), "axolotl recipe; touch memory and are not planned: relora; not known: mine");
}

}  // namespace
}  // namespace snug
