// Settings files of scripts that are nobody's but their authors'.

#include <gtest/gtest.h>

#include "recipe/dialects/changes.h"
#include "support_dialects.h"

namespace snug {
namespace {

// The model stands in another file; snug's own keys with slips of the pen are not taken for that.
TEST(OwnWords, need_not_name_the_model) {
  const ForeignRecipe read =
      foreign("batch_size: 2\ngradient_accumulation_steps: 8\nnum_epochs: 2\nlora: {r: 16}\nn_train: 9\n");
  EXPECT_TRUE(read.models.empty());
  EXPECT_EQ(read.recipe.batch, 2);
  EXPECT_EQ(read.recipe.lora.r, 16);
  EXPECT_FALSE(
      read_foreign_recipe("per_device_train_batch_sise: 2\ngradient_accumulation_steps: 8\nlora_q: 3\nlearning_rate: 1\n"
                          "max_length: 9\nlora_r: 8\n",
                          "r.yaml"));
}

// Beside the Trainer's own names a section of LoRA's is an adapter, in capitals too; of rank 0 it is none.
TEST(OwnWords, of_an_adapter_in_a_section_are_seen_beside_the_trainers) {
  const std::string names = "base_model: Qwen/Qwen2.5-0.5B\nper_device_train_batch_size: 2\nmax_seq_length: 64\nbeta: 0.1\n";
  EXPECT_EQ(value_of(foreign(names + "lora: {alpha: 32, r: 24}\n").recipe, "lora_r"), "24");
  EXPECT_EQ(value_of(foreign(names + "LoRA: {r: 8, alpha: 32}\n").recipe, "method"), "lora");
  EXPECT_EQ(value_of(foreign(names + "LoRA: {r: 0, alpha: 32}\n").recipe, "method"), "full");
}

// "method: lora" is ours in YAML, where no more than two keys are slips of the pen.
TEST(OwnWords, beside_a_method_are_somebodys) {
  const std::string json =
      R"({"base_model": "Qwen/Qwen2.5-0.5B", "method": "LoRA", "task": "causal_lm", "epochs": 3, "learning_rate": 2e-4,
          "batch_size": 2, "gradient_accumulation_steps": 4, "lora_r": 8, "lora_alpha": 16, "output_dir": "o"})";
  const ForeignRecipe read = foreign(json, "lora_config.json");
  EXPECT_EQ(model_of(read), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(value_of(read.recipe, "method"), "lora");
  EXPECT_EQ(read.recipe.batch, 2);
  const std::string yaml = "base_model: Qwen/Qwen2.5-0.5B\nmethod: qlora\nbatch_size: 6\nlora_r: 8\nlearning_rate: 1e-4\n";
  const ForeignRecipe own = foreign(yaml + "experiment: a\ndata_root: b\nuse_swanlab: true\n", "r.yaml");
  EXPECT_EQ(model_of(own), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(own.recipe.batch, 6);
  EXPECT_TRUE(own.recipe.quantize.in_4bit);
  EXPECT_FALSE(read_foreign_recipe(yaml + "max_lenght: 9\n", "r.yaml"));
}

// "data" is ours, but not among so many words that are not.
TEST(OwnWords, beside_a_file_of_data_are_somebodys) {
  const std::string yaml = "model: Qwen/Qwen2.5-0.5B\ndata: rows.jsonl\noutput_dir: o\nper_device_train_batch_size: 3\n";
  EXPECT_EQ(foreign(yaml + "gamma: 0.5\nuse_lora: true\nmargin_shift: 0.2\nmax_length: 1536\n", "r.yaml").recipe.batch, 3);
  EXPECT_FALSE(read_foreign_recipe(yaml + "max_lenght: 9\nlearning_rte: 1\n", "r.yaml"));
}

// "batch_size" beside names of TRL's is what a GPU takes; verl's rows are those of all GPUs.
TEST(OwnWords, of_rows_are_those_of_a_gpu_where_no_other_word_is) {
  const ForeignRecipe rows = foreign(
      R"({"model_name": "Qwen/Qwen2.5-0.5B", "dataset_name": "a/b", "output_dir": "./o", "batch_size": 4, "max_length": 512,
          "learning_rate": 2e-4, "lora_r": 8, "lora_alpha": 16.0, "target_modules": ["q_proj", "v_proj"]})",
      "train_config.json");
  EXPECT_EQ(rows.recipe.batch, 4);
  EXPECT_EQ(rows.recipe.method, Method::lora);
  const ForeignRecipe shared = foreign(
      "torchrun --standalone --nnodes=1 --nproc_per_node=4 -m verl.trainer.fsdp_sft_trainer "
      "model.partial_pretrain=Qwen/Qwen2.5-7B-Instruct data.max_length=16384 data.micro_batch_size_per_gpu=1 "
      "data.train_batch_size=32 optim.lr=5e-6\n",
      "run.sh");
  EXPECT_EQ(shared.recipe.batch, 1);
  EXPECT_EQ(shared.recipe.accumulation, 8);
}

// A name, a length and a rank are not Unsloth's, which would load in four bits; with a word of its own they are.
TEST(OwnWords, of_a_name_a_length_and_a_rank_are_nobodys) {
  const std::string names =
      "model_name: Qwen/Qwen2.5-0.5B\nmax_seq_length: 64\nlora_r: 8\nper_device_train_batch_size: 2\nlearning_rate: 1e-4\n";
  EXPECT_FALSE(foreign(names).recipe.quantize.in_4bit);
  EXPECT_EQ(foreign(names).recipe.method, Method::lora);
  EXPECT_TRUE(foreign(names + "random_state: 3407\n").recipe.quantize.in_4bit);
}

TEST(OwnWords, in_capitals_are_read_too) {
  const ForeignRecipe read = foreign(
      R"({"MODEL_NAME": "Qwen/Qwen2.5-1.5B", "TRAIN_PATH": "./data", "USE_LORA": true, "LORA_RANK": 12, "MAX_SEQ_LENGTH": 768,
          "LEARNING_RATE": 2e-05, "PER_DEVICE_BATCH_SIZE": 3, "GRAD_ACCUM_STEPS": 16, "FP16": true, "BF16": false})",
      "settings.json");
  EXPECT_EQ(model_of(read), "Qwen/Qwen2.5-1.5B");
  EXPECT_EQ(read.recipe.method, Method::lora);
  EXPECT_EQ(read.recipe.lora.r, 12);
  EXPECT_EQ(read.recipe.batch, 3);
  EXPECT_EQ(read.recipe.accumulation, 16);
  EXPECT_EQ(read.recipe.seq_len, 768);
  EXPECT_TRUE(read.recipe.fp16);
}

// P-Tuning trains a prefix, not the model.
TEST(OwnWords, of_a_prefix_are_told_of) {
  const ForeignRecipe read = foreign(
      "python main.py --do_train --model_name_or_path google/gemma-2b --pre_seq_len 128 --learning_rate 2e-2 "
      "--per_device_train_batch_size 1\n",
      "train.sh");
  EXPECT_TRUE(std::ranges::any_of(
      read.keys, [](const ForeignKey& key) { return key.name == "pre_seq_len" && key.fate == KeyFate::touches_memory; }));
}

// A program of which only the words are known, which are LLaMA-Factory's.
TEST(OwnWords, of_a_forks_command_say_the_method) {
  const ForeignRecipe read = foreign(
      "somebodys_ft train --model_name_or_path a/b-1b --finetuning_type lora --per_device_train_batch_size 4 "
      "--learning_rate 1e-5 --num_train_epochs 3\n",
      "run.sh");
  EXPECT_EQ(value_of(read.recipe, "method"), "lora");
  EXPECT_EQ(read.recipe.batch, 4);
}

// A file that is gone on from is no model, nor is a data set; lengths and GPUs beyond all reason are none.
TEST(OwnWords, that_look_like_a_model_or_a_number_are_none) {
  const std::string rest = "batch_size: 2\nlr: 1e-5\nmax_len: 64\nepochs: 1\n";
  EXPECT_EQ(model_of(foreign("base: configs/base-1b.yaml\ndata: {hf_path: a/chat-1b}\n" + rest)), "none");
  const ForeignRecipe read = foreign(
      "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=a/b-1b data.max_prompt_length=9223372036854775807 "
      "data.max_response_length=9223372036854775807 trainer.nnodes=9223372036854775807 trainer.n_gpus_per_node=9 "
      "actor_rollout_ref.actor.ppo_micro_batch_size=9223372036854775807\n",
      "run.sh");
  EXPECT_EQ(model_of(read), "a/b-1b");
  EXPECT_EQ(read.recipe.seq_len, 0);
}

// Bits are those of what is switched on; a kind of four bits is of a model in four; H2O's studio has them for a dtype.
TEST(OwnWords, of_bits_are_read_with_what_stands_beside_them) {
  const std::string rest = "batch_size: 2\nlr: 1e-5\nmax_len: 64\nepochs: 1\nlora: {r: 8}\nmodel: {name: a/b-1b}\n";
  const auto in_4bit = [&](const std::string& words) { return foreign(rest + words).recipe.quantize.in_4bit; };
  EXPECT_FALSE(in_4bit("quantization: {enabled: false, bits: 4}\n"));
  EXPECT_TRUE(in_4bit("quantization: {enabled: true, bits: 4}\n"));
  EXPECT_TRUE(in_4bit("quant: {bnb_4bit_quant_type: nf4, bnb_4bit_compute_dtype: bfloat16}\n"));
  EXPECT_FALSE(in_4bit("quant: {bnb_4bit_quant_type: nf4, load_in_4bit: false}\n"));
  EXPECT_TRUE(in_4bit("architecture: {backbone_dtype: int4}\n"));
}

// llama-recipes' words, which many started from.
TEST(OwnWords, of_llama_recipes_are_read) {
  const ForeignRecipe read = foreign(
      "torchrun --nproc_per_node 4 finetuning.py --enable_fsdp --use_peft --peft_method lora --batch_size_training 6 "
      "--context_length 2048 --model_name a/b-1b --fsdp_config.pure_bf16\n",
      "run.sh");
  EXPECT_EQ(read.recipe.method, Method::lora);
  EXPECT_EQ(read.recipe.batch, 6);
  EXPECT_EQ(read.recipe.seq_len, 2048);
  EXPECT_TRUE(read.recipe.bf16);
  EXPECT_EQ(key_named(read, "fsdp").value, "full_shard");
}

// The model that is trained, beside one that it is compared with or taught by.
TEST(OwnWords, name_the_trained_model_in_more_ways) {
  const std::string rest = "\nbatch_size: 2\nlr: 1e-5\nmax_len: 64\nepochs: 1\n";
  for (const char* named : {"policy_name: a/b-1b\nref_name: c/d-1b", "student_model: a/b-1b\nteacher_model: c/d-1b",
                            "model: {init: {hf_path: a/b-1b}}", "models: {sft_backbone: a/b-1b, reward_model: c/d-1b}",
                            "model: {base_path: a/b-1b}", "base: a/b-1b"})
    EXPECT_EQ(model_of(foreign(named + rest)), "a/b-1b") << named;
}

// Settings of a script that is its author's alone.
TEST(OwnWords, are_read_by_the_trainers_names) {
  const ForeignRecipe read = foreign(R"(model:
  name: Qwen/Qwen3-1.7B
  max_seq_len: 1024
lora: {r: 32, alpha: 64, target_modules: [q_proj, v_proj]}
quantization:
  load_in_4bit: true
training:
  batch_size: 2
  grad_accum: 8
  lr: 1e-5
  mixed_precision: bf16
  optimizer: paged_adamw_8bit
evaluation:
  batch_size: 64
  max_length: 9
judge: {model_name: openai/gpt-oss-20b}
)");
  EXPECT_EQ(read.models.front(), "Qwen/Qwen3-1.7B");
  const std::pair<const char*, const char*> expected[] = {{"method", "lora"},
                                                          {"lora_r", "32"},
                                                          {"lora_alpha", "64"},
                                                          {"lora_target_modules", "q_proj,v_proj"},
                                                          {"load_in_4bit", "true"},
                                                          {"per_device_train_batch_size", "2"},
                                                          {"gradient_accumulation_steps", "8"},
                                                          {"max_length", "1024"},
                                                          {"bf16", "true"},
                                                          {"optim", "paged_adamw_8bit"},
                                                          {"learning_rate", "1e-05"}};
  for (const auto& [key, value] : expected) EXPECT_EQ(value_of(read.recipe, key), value) << key;
  EXPECT_EQ(read.notes.back(), "its keys are of its own; read by the names of Hugging Face's Trainer");
  EXPECT_EQ(key_named(read, "evaluation.batch_size").fate, KeyFate::unknown);
  const ForeignRecipe full = foreign("model_name: a/b\ntraining_mode: full\nmax_length: 64\nbatch_size: 1\nlora: {r: 8}\n");
  EXPECT_EQ(value_of(full.recipe, "method"), "full");
  const ForeignRecipe bits =
      foreign("training:\n  model_name: a/b\n  fp16: true\n  epochs: 1\nquant: {load_in_4bit: true}\n");
  EXPECT_EQ(value_of(bits.recipe, "method"), "lora");
}

// A shell script around a script of its author's own; keys of another trainer beside a model that it has no word for.
TEST(OwnWords, of_shell_scripts_and_beside_the_trainers_are_read) {
  const ForeignRecipe read = foreign("python3 finetune.py \\\n  --base_model ../llama-13b/ \\\n  --num_epochs 3\n", "r.sh");
  EXPECT_EQ(read.models.front(), "../llama-13b");
  EXPECT_FALSE(read_foreign_recipe("python3 score.py --base_model ../llama-13b/ --seed 3\n", "r.sh"));
  EXPECT_EQ(foreign("python3 run.py --model_name_or_path a/b --learning_rate 1e-4 --epochs 2\n", "r.sh").models.front(),
            "a/b");
  const ForeignRecipe kind =
      foreign("model: {name: hf_causal_lm, pretrained_model_name_or_path: a/b}\nmax_seq_len: 64\nlr: 1\nepochs: 2\n");
  EXPECT_EQ(kind.models.front(), "a/b");
}

// alpaca-lora's flags and others among the Trainer's: of a step's rows the micro-batch has some.
TEST(OwnWords, among_the_trainers_are_read_too) {
  const ForeignRecipe alpaca = foreign(
      "python finetune.py --base_model a/b --data_path x.json --batch_size 128 \\\n"
      "  --micro_batch_size 4 --cutoff_len 512 --lora_r 16\n",
      "r.sh");
  const std::pair<const char*, const char*> expected[] = {{"per_device_train_batch_size", "4"},
                                                          {"gradient_accumulation_steps", "32"},
                                                          {"max_length", "512"},
                                                          {"lora_r", "16"},
                                                          {"method", "lora"}};
  for (const auto& [key, value] : expected) EXPECT_EQ(value_of(alpaca.recipe, key), value) << key;
  const ForeignRecipe bits = foreign(
      "torchrun train.py --model_name_or_path a/b --per_device_train_batch_size 2 --bf16 True "
      "--load_in_bits 4 --lora_r 8 --block_size 1024\n",
      "r.sh");
  EXPECT_EQ(value_of(bits.recipe, "load_in_4bit"), "true");
  EXPECT_EQ(value_of(bits.recipe, "max_length"), "1024");
  EXPECT_EQ(value_of(bits.recipe, "bf16"), "true");
  // What has a rest, or is a test's, says nothing of a step.
  const ForeignRecipe rest =
      foreign("model: {name: a/b}\nmicro_batch_size: 3\nbatch_size: 8\nlr: 1\nepochs: 2\neval: {batch_size: 9}\n");
  EXPECT_EQ(value_of(rest.recipe, "gradient_accumulation_steps"), "1");
}

// Words of qlora.py's, FastChat's and LLaMA-Factory's that scripts made of them have kept, in a script that is not there.
TEST(OwnWords, of_scripts_made_of_others_say_method_bits_and_rows) {
  const std::string train = "torchrun finetune.py --model_name_or_path a/b --per_device_train_batch_size 2 --bf16 True ";
  const auto with = [&](const std::string& flags) { return foreign(train + flags + "\n", "r.sh"); };
  for (const char* flags : {"--use_lora True --lora_r 64 --bits 4 --quant_type nf4 --double_quant",
                            "--lora_r 8 --q_lora True", "--finetuning_type lora --quantization_bit 4"}) {
    const ForeignRecipe read = with(flags);
    EXPECT_EQ(value_of(read.recipe, "method"), "lora") << flags;
    EXPECT_EQ(value_of(read.recipe, "load_in_4bit"), "true") << flags;
    EXPECT_TRUE(read.named(KeyFate::unknown).empty()) << flags;
  }
  EXPECT_EQ(value_of(with("--use_lora True --num_bits 8").recipe, "load_in_8bit"), "true");
  EXPECT_EQ(value_of(with("--use_lora True --bits 16").recipe, "load_in_4bit"), "false");
  EXPECT_EQ(with("--finetuning_type freeze").named(KeyFate::touches_memory), std::vector<std::string>{"finetuning_type"});

  EXPECT_EQ(with("--max_source_length 256 --max_target_length 128").recipe.seq_len, 384);
  EXPECT_EQ(with("--max_prompt_len 1024 --max_ans_len 512").recipe.seq_len, 1536);
  EXPECT_EQ(with("--source_max_len 280 --target_max_len 512 --model_max_length 600").recipe.seq_len, 600);
  EXPECT_TRUE(with("--max_source_length 256 --max_seq_length 512").named(KeyFate::touches_memory).empty());
  EXPECT_EQ(with("--max_source_length 256").named(KeyFate::touches_memory), std::vector<std::string>{"max_source_length"});
}

// A model by the one word that tells of it, a method and bits in words, sections beside a key that is ours too.
TEST(OwnWords, say_model_method_and_bits_in_many_ways) {
  const std::string rest = "epochs: 1\nlr: 1e-4\nbatch_size: 2\n";
  const std::pair<std::string, const char*> methods[] = {
      {"model: a/b-1b\nquant: 4bit\nlora_r: 8\nsplits: data\n" + rest, "true"},
      {"method: qlora\nmodel: {name: a/b-1b}\n" + rest, "true"},
      {"method: lora\nmodel: {name: a/b-1b}\n" + rest, "false"},
      {"base_model: a/b-1b\nquantization: nf4\nlora: {r: 8}\n" + rest, "true"}};
  for (const auto& [text, four_bits] : methods) {
    const ForeignRecipe recipe = foreign(text);
    ASSERT_FALSE(recipe.models.empty()) << text;
    EXPECT_EQ(recipe.models.front(), "a/b-1b") << text;
    EXPECT_EQ(value_of(recipe.recipe, "method"), "lora") << text;
    EXPECT_EQ(value_of(recipe.recipe, "load_in_4bit"), four_bits) << text;
  }
  // Of a list of other files nobody knows what its words stand for.
  EXPECT_FALSE(read_foreign_recipe(
      "defaults:\n  - model: qwen3\n  - model: qwen3-8b\ntraining: {batch_size: 4, epochs: 1, lr: 1}\n", "r.yaml"));
  const ForeignRecipe full = foreign("method: full_ft\nmodel: {name: a/b-1b}\n" + rest);
  EXPECT_EQ(value_of(full.recipe, "method"), "full");
}

TEST(OwnWords, of_a_model_are_taken_where_no_trainer_has_them) {
  const ForeignRecipe named = foreign(
      "accelerate launch tune.py --model_path_name qwen/Qwen-1_8B --output_model_dir x/y1 --learning_rate 1 "
      "--per_device_train_batch_size 2\n",
      "r.sh");
  ASSERT_FALSE(named.models.empty());
  EXPECT_EQ(named.models.front(), "qwen/Qwen-1_8B");
  EXPECT_EQ(key_named(named, "model_path_name").note, "taken for its model");
  const ForeignRecipe script = foreign(
      "from model import Mistral\nmodel_id = 'mistralai/Mistral-7B-v0.1'\nmodel = Mistral(model_id)\n"
      "Trainer(model=model.get(), args=TrainingArguments('out', per_device_train_batch_size=4)).train()\n",
      "r.py");
  ASSERT_FALSE(script.models.empty());
  EXPECT_EQ(script.models.front(), "mistralai/Mistral-7B-v0.1");
}

TEST(OwnWords, of_a_file_that_is_named_so_are_qlora) {
  const std::string keys = R"({"model_name_or_path": "01-ai/Yi-6B", "lora_rank": 64, "lora_alpha": 16, "max_seq_length": 384,
      "per_device_train_batch_size": 8, "learning_rate": 1e-4, "output_dir": "o", "train_file": "d"@})";
  const auto with = [&](const std::string& more) { return std::string(keys).replace(keys.find('@'), 1, more); };
  const ForeignRecipe named = foreign(with(""), "train_args/qlora/yi.json");
  EXPECT_TRUE(named.recipe.quantize.in_4bit);
  EXPECT_TRUE(says(named, "its name says QLoRA and no key how many bits: planned in 4"));
  EXPECT_FALSE(foreign(with(""), "train_args/lora/yi.json").recipe.quantize.any());
  EXPECT_FALSE(foreign(with(R"(, "load_in_4bit": false)"), "yi-qlora.json").recipe.quantize.any());
}

// "method" is one of our keys only with one of our values, and "null" is no module.
TEST(OwnWords, that_are_ours_with_other_values_are_somebodys) {
  const ForeignRecipe json = foreign(
      R"({"method": "dpo", "batch_size": 16, "learning_rate": 1e-06, "gradient_accumulation_steps": 2,
          "model_name": "HuggingFaceTB/SmolLM-135M", "max_seq_length": 512, "warmup_ratio": 0.1})",
      "training_config.json");
  EXPECT_EQ(json.models.front(), "HuggingFaceTB/SmolLM-135M");
  EXPECT_EQ(json.recipe.batch, 16);
  EXPECT_EQ(json.recipe.seq_len, 512);
  const ForeignRecipe bits = foreign(
      R"({"model": "Qwen/Qwen3-1.7B", "dataset": "d", "max_seq_length": 2048, "bits": 4, "r": 96, "lora_alpha": 96,
          "target_modules": "all-linear", "per_device_train_batch_size": 2, "learning_rate": 1e-4, "output_dir": "o"})",
      "sft.json");
  EXPECT_EQ(bits.dialect, Dialect::hugging_face);
  EXPECT_EQ(bits.recipe.lora.r, 96);
  EXPECT_EQ(bits.recipe.seq_len, 2048);
  EXPECT_TRUE(bits.recipe.quantize.in_4bit);
  const ForeignRecipe data = foreign(
      R"({"model": "Qwen/Qwen3-1.7B", "data": "runs/turns.jsonl", "output_dir": "runs/sft", "epochs": 1.0, "batch_size": 1,
          "grad_accum": 8, "learning_rate": 1e-05, "max_seq_len": 12288, "load_4bit": true, "lora_rank": 8})",
      "sft.json");
  EXPECT_EQ(data.models.front(), "Qwen/Qwen3-1.7B");
  EXPECT_EQ(data.recipe.accumulation, 8);
  EXPECT_TRUE(data.recipe.quantize.in_4bit);
  const ForeignRecipe shell = foreign(
      "python train.py --model_name_or_path gpt2 --use_peft true --lora_r 4 --modules_to_save null --max_length 64 --bf16\n",
      "r.sh");
  EXPECT_TRUE(shell.recipe.lora.modules_to_save.empty());
}

// Nothing is written into them, and what may be ours, or names no model, is not taken.
TEST(OwnWords, are_not_written_and_leave_our_recipes_alone) {
  const std::string text = "model: {name: a/b}\ntraining: {batch_size: 4, epochs: 1, lr: 1e-4}\n";
  const std::vector<RecipeChange> changes = {{"per_device_train_batch_size", "1"}};
  const RecipePatch patch = change_foreign_recipe(text, "r.yaml", changes);
  EXPECT_EQ(patch.text, text);
  ASSERT_EQ(patch.unsaid.size(), 1u);
  for (const char* ours : {"model: a/b\nmax_length: 64\nlearning_rate: 1e-4\nbf16: true\n",
                           "model_name_or_path: a/b\nmax_lenght: 64\nlearning_rate: 1e-4\nbf16: true\nfp16: false\n",
                           "training: {batch_size: 4, epochs: 1, lr: 1e-4}\n", "model: {name: a/b}\nlr: 1\n"})
    EXPECT_FALSE(read_foreign_recipe(ours, "r.yaml")) << ours;
}

// axolotl reads YAML alone: keys of the same names in JSON are somebody's own, and what they say of LoRA holds.
TEST(OwnWords, InJsonAreNotAxolotls) {
  const ForeignRecipe read = foreign(
      R"({"base_model": "google/gemma-2b-it", "model_type": "GemmaForCausalLM", "load_in_4bit": true, "datasets": [],
          "lora_r": 8, "lora_alpha": 32, "micro_batch_size": 1, "gradient_accumulation_steps": 16})",
      "train_config.json");
  EXPECT_EQ(read.recipe.method, Method::lora);
  EXPECT_TRUE(read.recipe.quantize.any());
  EXPECT_EQ(read.recipe.lora.r, 8);
  EXPECT_EQ(read.recipe.batch, 1);
  const ForeignRecipe plain = foreign(
      R"({"model_name_or_path": "google/gemma-2b", "max_length": 96, "batch_size": 3, "quantization": "4bit", "lora_r": 4,
          "learning_rate": 1e-4})",
      "config.json");
  EXPECT_EQ(plain.recipe.batch, 3);
  EXPECT_TRUE(plain.recipe.quantize.any());
}

// Sections of one's own with the Trainer's names in them, and a file that has one key of snug's among several of its own.
TEST(OwnWords, InSectionsAndBesideOneOfOursAreReadToo) {
  const ForeignRecipe sections = foreign(
      "model_short: small\nmodel_name_or_path: google/gemma-2b\nsft:\n  per_device_train_batch_size: 2\n"
      "  gradient_accumulation_steps: 8\n  max_seq_length: 640\nlora: {enabled: true, r: 16}\n");
  EXPECT_EQ(sections.models.front(), "google/gemma-2b");
  EXPECT_EQ(sections.recipe.batch, 2);
  EXPECT_EQ(sections.recipe.lora.r, 16);
  EXPECT_EQ(sections.recipe.seq_len, 640);
  const ForeignRecipe beside = foreign(
      "model: Qwen/Qwen2.5-7B\nmodel_type: causal_lm\ndata_root: d\ndataset_name: u\ndataset_format: parquet\nlora_r: 4\n"
      "per_device_train_batch_size: 3\nmax_seq_length: 96\n");
  EXPECT_EQ(beside.models.front(), "Qwen/Qwen2.5-7B");
  EXPECT_EQ(beside.recipe.batch, 3);
}

// The Trainer's names, which are ours, among more of the author's own than a slip of the pen makes; fewer are ours to
// refuse.
TEST(OwnWords, AmongTheTrainersNamesAreReadAsTheTrainers) {
  const std::string names =
      "output_dir: o\nmodel_name_or_path: google/gemma-2b\nper_device_train_batch_size: 4\nlora_r: 16\nmax_length: 640\n";
  const ForeignRecipe recipe = foreign(names + "train_embedding: false\nmin_seq_length: 300\nwindow_step_size: 1024\n");
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.batch, 4);
  EXPECT_EQ(recipe.recipe.seq_len, 640);
  EXPECT_EQ(recipe.named(KeyFate::unknown).size(), 3U);
  EXPECT_FALSE(read_foreign_recipe(names + "train_embeding: false\nmin_sq_length: 300\n", "r.yaml"));
}

// mlx_lm's defaults (mlx_lm/lora.py): rank 8, four rows, 2,048 tokens, nothing checkpointed.
TEST(OwnWords, OfMlxAreReadWithItsDefaults) {
  const ForeignRecipe plain =
      foreign("python -m mlx_lm.lora \\\n  --model google/gemma-2b \\\n  --train --data d --iters 9\n", "r.sh");
  EXPECT_EQ(plain.models.front(), "google/gemma-2b");
  EXPECT_EQ(plain.recipe.method, Method::lora);
  EXPECT_EQ(plain.recipe.lora.r, 8);
  EXPECT_EQ(plain.recipe.batch, 4);
  EXPECT_EQ(plain.recipe.seq_len, 2048);
  EXPECT_FALSE(plain.recipe.gradient_checkpointing);
  const ForeignRecipe said =
      foreign("mlx_lm.lora --model google/gemma-2b --train --batch-size 2 --max-seq-length 640 --grad-checkpoint\n", "r.sh");
  EXPECT_EQ(said.recipe.batch, 2);
  EXPECT_EQ(said.recipe.seq_len, 640);
  EXPECT_TRUE(said.recipe.gradient_checkpointing);
}

TEST(OwnWords, OfSeveralModelsTheFirstIsPlannedAndTold) {
  const ForeignRecipe recipe = foreign(
      "models:\n  - name: google/gemma-2b\n    short: g\n  - name: Qwen/Qwen2.5-7B\n"
      "training: {batch_size: 3, learning_rate: 1e-4, max_length: 96}\nlora: {r: 4}\n");
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.batch, 3);
  EXPECT_NE(std::ranges::find(recipe.notes, "several models: planned is the first, google/gemma-2b"), recipe.notes.end());
}

// A Lightning script's.
TEST(OwnWords, OfLightningSayPrecisionInBits) {
  const ForeignRecipe recipe = foreign(
      "python custom_train.py --model_key google/gemma-2b --lr 2e-5 --batch_size 8 --max_length 256 --train_lora \\\n"
      "  --lora_rank 128 --precision 16 --accumulate 2\n",
      "r.sh");
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.lora.r, 128);
  EXPECT_EQ(recipe.recipe.accumulation, 2);
  EXPECT_TRUE(recipe.recipe.fp16);
}

}  // namespace
}  // namespace snug
