// Shell scripts that hand on a file of keys: one that they write themselves, one that lies beside them.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "recipe/dialects/changes.h"
#include "recipe/support_dialects.h"

namespace snug::testing {

namespace {

class HandedOn : public RecipeFolder {
 protected:
  ForeignRecipe read(const std::string& script) const { return foreign(script, (directory_ / "run.sh").string()); }
};

const std::string kKeys =
    "model_name_or_path: Qwen/Qwen2.5-0.5B\nstage: sft\nfinetuning_type: lora\nlora_rank: 16\ntemplate: qwen\n"
    "dataset: a\ncutoff_len: 640\nper_device_train_batch_size: 3\n";

TEST_F(HandedOn, what_the_script_writes_is_read) {
  const std::string train = "llamafactory-cli train train.yaml\n";
  for (const std::string& head : {std::string("cat > train.yaml << EOF\n"), std::string("cat <<'EOF' >train.yaml\n"),
                                  std::string("cat <<-EOF > ./train.yaml\n"), std::string("tee train.yaml <<EOF\n"),
                                  std::string("tee train.yaml <<\"EOF\" > /dev/null\n")}) {
    const ForeignRecipe recipe = read(head + kKeys + "EOF\n" + train);
    ASSERT_FALSE(recipe.models.empty()) << head;
    EXPECT_EQ(recipe.models.front(), "Qwen/Qwen2.5-0.5B") << head;
    EXPECT_EQ(recipe.recipe.lora.r, 16) << head;
    EXPECT_EQ(recipe.recipe.seq_len, 640) << head;
    EXPECT_EQ(recipe.recipe.batch, 3) << head;
    EXPECT_TRUE(says(recipe, "read beside it: train.yaml, which the script writes")) << head;
  }
}

TEST_F(HandedOn, variables_are_put_in_but_where_the_end_is_quoted) {
  const std::string keys =
      "model_name_or_path: ${MODEL:-Qwen/Qwen2.5-0.5B}\nfinetuning_type: lora\ntemplate: qwen\ndataset: a\n"
      "lora_rank: $RANK\nlora_alpha: 8\n";
  const std::string train = "EOF\nllamafactory-cli train t.yaml\n";
  EXPECT_EQ(read("RANK=32\ncat > t.yaml <<EOF\n" + keys + train).recipe.lora.r, 32);
  const ForeignRecipe raw = read("RANK=32\ncat > t.yaml <<'EOF'\n" + keys + train);
  EXPECT_EQ(key_named(raw, "lora_rank").fate, KeyFate::touches_memory);
}

TEST_F(HandedOn, what_lies_beside_it_is_read_and_the_command_holds_over_it) {
  put("train.yaml", kKeys);
  const ForeignRecipe recipe = read("llamafactory-cli train train.yaml per_device_train_batch_size=5\n");
  EXPECT_EQ(recipe.models.front(), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(recipe.recipe.batch, 5);
  EXPECT_EQ(recipe.recipe.seq_len, 640);
  EXPECT_TRUE(says(recipe, "read beside it: train.yaml"));
  put("swift.json", "{\"model\": \"Qwen/Qwen2.5-0.5B\", \"train_type\": \"lora\", \"dataset\": \"a\", \"max_length\": 96}");
  const ForeignRecipe swift = read("NPROC_PER_NODE=2 swift sft --config swift.json --lora_rank 4\n");
  EXPECT_EQ(swift.recipe.seq_len, 96);
  EXPECT_EQ(swift.recipe.lora.r, 4);
  EXPECT_EQ(swift.gpus, 2);
}

TEST_F(HandedOn, what_the_command_says_holds_whatever_the_key) {
  put("train.yaml", kKeys);
  const ForeignRecipe recipe = read("accelerate launch sft.py --config train.yaml --model_name_or_path a/other-1b --bf16\n");
  EXPECT_EQ(recipe.models.front(), "a/other-1b");
  EXPECT_EQ(recipe.recipe.batch, 3);
}

// "source config.sh", whose folder only a shell knows; what is not there changes nothing.
TEST_F(HandedOn, what_a_script_sources_sets_its_variables) {
  put("config.sh", "source nothing.sh\nMODEL=${MODEL:-Qwen/Qwen2.5-0.5B}\nBATCH=7\nsource ./config.sh\n");
  const ForeignRecipe recipe = read(
      "source \"$( dirname \"${BASH_SOURCE[0]}\" )/config.sh\"\n"
      "python train.py --model_name_or_path $MODEL --per_device_train_batch_size $BATCH --learning_rate 1\n");
  EXPECT_EQ(recipe.models.front(), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(recipe.recipe.batch, 7);
}

// What trains may stand in a script that is started with arguments.
TEST_F(HandedOn, a_script_that_is_started_is_read_with_its_arguments) {
  put("train.slurm",
      "#!/bin/bash\nROWS=${2:-9}\ntorchrun train.py --model_name_or_path $1 --per_device_train_batch_size $ROWS "
      "--gradient_accumulation_steps $STEPS --learning_rate 1e-4\n");
  put("all.sh", "python train.py \"$@\" --max_steps 3\n");
  const std::string script = "export STEPS=5\nsbatch train.slurm google/gemma-2b 6\n";
  ForeignRecipe recipe = read(script);
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.batch, 6);
  EXPECT_EQ(recipe.recipe.accumulation, 5);
  EXPECT_TRUE(says(recipe, "read beside it: train.slurm"));
  // Behind a queue's own flags; ": ${A:=b}" sets what is not set.
  recipe = read(": \"${ROWS:=3}\"\n: ${STEPS:=6}\nsbatch train.slurm google/gemma-7b $ROWS\n");
  EXPECT_EQ(recipe.recipe.batch, 3);
  EXPECT_EQ(recipe.recipe.accumulation, 6);
  recipe = read("ROWS=1\nsbatch --job-name=\"a b\" -p gpu --export=ALL,STEPS=3,X train.slurm google/gemma-7b 2\n");
  EXPECT_EQ(recipe.models.front(), "google/gemma-7b");
  EXPECT_EQ(recipe.recipe.batch, 2);
  EXPECT_EQ(recipe.recipe.accumulation, 3);
  EXPECT_EQ(read("srun --output=o/node-%t.out sh train.slurm google/gemma-2b 4\n").recipe.batch, 4);
  recipe = read("bash all.sh --model_name_or_path google/gemma-2b --per_device_train_batch_size 4 --learning_rate 1\n");
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.batch, 4);
  // One that reads its options itself, in a loop.
  put("loop.sh",
      "ROWS=9\nSTEPS=7\nwhile [[ $# -gt 0 ]]; do\n  case $1 in\n    --gpus) gpus=\"$2\"; shift 2;;\n    --model)\n      "
      "MODEL=$2\n"
      "      shift 2 ;;\n    --rows) ROWS=\"$2\"; shift 2;;\n    --steps) STEPS=$2; shift 2;;\n  esac\ndone\n"
      "python train.py --model_name_or_path $MODEL --per_device_train_batch_size $ROWS --learning_rate 1 "
      "--gradient_accumulation_steps $STEPS\n");
  recipe = read("bash loop.sh \\\n  --gpus 0,1 \\\n  --model google/gemma-2b --rows 2\n");
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.batch, 2);
  EXPECT_EQ(recipe.recipe.accumulation, 7);
  // Nothing is written into a file that it does not stand in.
  const RecipePatch patch =
      change_foreign_recipe(script, (directory_ / "run.sh").string(), {{{"per_device_train_batch_size", "2"}}});
  EXPECT_EQ(patch.text, script);
  EXPECT_EQ(patch.unsaid.size(), 1U);
  put("a.sh", "bash b.sh\n");
  put("b.sh", "bash a.sh\n");
  EXPECT_THROW(read_foreign_recipe("bash a.sh\n", (directory_ / "run.sh").string()), Error);
}

// accelerate's own settings: precision, processes, ZeRO or FSDP by what they say, whatever their file is called.
TEST_F(HandedOn, settings_of_a_launcher_are_read) {
  const std::string head = "compute_environment: LOCAL_MACHINE\nnum_machines: 1\n";
  put("one.yaml", head +
                      "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n  offload_optimizer_device: cpu\n"
                      "mixed_precision: bf16\nnum_processes: 4\n");
  put("zero3.yaml", head +
                        "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n"
                        "  fsdp_activation_checkpointing: true\nmixed_precision: 'no'\nnum_processes: 2\n");
  const std::string train = "train.py --model_name_or_path google/gemma-2b --per_device_train_batch_size 3\n";
  ForeignRecipe recipe = read("accelerate launch --config_file one.yaml " + train);
  EXPECT_EQ(recipe.gpus, 4);
  EXPECT_EQ(recipe.sharding, Sharding::zero2);
  EXPECT_TRUE(recipe.offloads);
  EXPECT_EQ(value_of(recipe.recipe, "bf16"), "true");
  EXPECT_TRUE(says(recipe, "read beside it: one.yaml"));
  recipe = read("accelerate launch --config_file zero3.yaml --num_processes 8 " + train);
  EXPECT_EQ(recipe.gpus, 8);
  EXPECT_EQ(recipe.sharding, Sharding::fsdp);
  EXPECT_TRUE(recipe.fsdp.keeps_gathered);
  EXPECT_TRUE(recipe.recipe.gradient_checkpointing);
  EXPECT_FALSE(recipe.offloads);
  EXPECT_EQ(read("accelerate launch --config_file absent_zero3.yaml " + train).sharding, Sharding::zero3);
}

// Functions are read where they are called, with what they are given; where nothing calls them and nothing else trains, as
// they stand.
TEST_F(HandedOn, functions_are_read_where_they_are_called) {
  const std::string train =
      "  python train.py --model_name_or_path $MODEL --per_device_train_batch_size ${2:-9} --learning_rate 1 $3\n";
  const std::string both = "MODEL=google/gemma-2b\nsmall() {\n  local MODEL=google/gemma-2b\n" + train +
                           "}\nfunction big\n{\n  # a brace } here\n  MODEL=google/gemma-7b; echo \"}\"\n" + train + "}\n";
  EXPECT_EQ(read(both + "small x 4\n").recipe.batch, 4);
  EXPECT_EQ(read(both + "small x 4\n").models.front(), "google/gemma-2b");
  EXPECT_EQ(read(both + "big x\n").models.front(), "google/gemma-7b");
  EXPECT_EQ(read(both + "big x\n").recipe.batch, 9);
  EXPECT_EQ(read(both + "big x 2 \"--lora_r 8\"\n").recipe.lora.r, 8);
  EXPECT_EQ(read(both + "if [ a = b ]; then big x 2; else small x 3; fi\n").recipe.batch, 3);
  EXPECT_EQ(read("main() {\n  small y 5\n}\n" + both + "main \"$@\"\n").recipe.batch, 5);
  EXPECT_EQ(read("train() { python train.py --model_name_or_path google/gemma-2b --learning_rate 1; }\n").models.front(),
            "google/gemma-2b");
  put("common.sh", both);
  EXPECT_EQ(read("source common.sh\nsmall x 6\n").recipe.batch, 6);
  // Nothing is written where a file does not have it.
  const std::string script = "source common.sh\nsmall x 6\n";
  const RecipePatch patch =
      change_foreign_recipe(script, (directory_ / "run.sh").string(), {{{"per_device_train_batch_size", "2"}}});
  EXPECT_EQ(patch.text, script);
  EXPECT_NO_THROW(read("a() { b; b; b; }\nb() { a; a; a; }\na\n" + both + "small x 6\n"));
}

// Where the script lies only a shell reckons out; what it starts from there is found all the same.
TEST_F(HandedOn, the_folder_of_the_script_is_known) {
  put("sft.py",
      "model = AutoModelForCausalLM.from_pretrained('google/gemma-2b')\nTrainer(model=model, args=TrainingArguments("
      "'o', per_device_train_batch_size=3))\n");
  put("two.yaml", "num_processes: 2\n");
  for (const char* head :
       {"HERE=$(cd -- \"$(dirname -- \"${BASH_SOURCE[0]}\")\" &> /dev/null && pwd)\n", "HERE=\"$(dirname \"$0\")\"\n"}) {
    const ForeignRecipe recipe =
        read(std::string(head) + "accelerate launch --config_file=$HERE/two.yaml \"$HERE/sft.py\"\n");
    ASSERT_FALSE(recipe.models.empty()) << head;
    EXPECT_EQ(recipe.models.front(), "google/gemma-2b") << head;
    EXPECT_EQ(recipe.recipe.batch, 3) << head;
    EXPECT_EQ(recipe.gpus, 2) << head;
  }
}

// Remarks between backticks, a folder that only a shell knows before the script, and qlora.py's own words without it.
TEST_F(HandedOn, remarks_folders_and_bits) {
  const std::string flags =
      "--per_device_train_batch_size 2 `# fits`\\\n  --gradient_accumulation_steps 16 `# as the paper has it`\\\n"
      "  --bits 4 --double_quant --quant_type nf4 --model_max_len 640 --lora_r 64\n";
  const ForeignRecipe recipe = read("python qlora.py --model_name_or_path google/gemma-2b \\\n  " + flags);
  EXPECT_EQ(recipe.recipe.batch, 2);
  EXPECT_EQ(recipe.recipe.accumulation, 16);
  EXPECT_TRUE(recipe.recipe.quantize.any());
  EXPECT_EQ(recipe.recipe.seq_len, 640);
  EXPECT_EQ(recipe.recipe.lora.r, 64);
  put("sft.py",
      "model = AutoModelForCausalLM.from_pretrained('google/gemma-7b')\nTrainer(model=model, args=TrainingArguments("
      "'o', per_device_train_batch_size=3))\n");
  EXPECT_EQ(read("python ${ROOT}/sft.py\n").models.front(), "google/gemma-7b");
}

TEST_F(HandedOn, remarks_may_have_lines_of_their_own) {
  const ForeignRecipe read_here = read(
      "python train_sft.py \\\n\t`\n\t# The model\n  # and its data\n\t` \\\n --model_name_or_path gpt2 \\\n"
      "  `# rows` --per_device_train_batch_size 3 --max_length 64\n");
  EXPECT_EQ(read_here.models.front(), "gpt2");
  EXPECT_EQ(read_here.recipe.batch, 3);
}

TEST_F(HandedOn, options_that_are_shifted_away_before_they_are_looked_at_have_their_values) {
  put("tune.sh",
      "MODEL=gpt2\nROWS=1\nwhile [[ \"$#\" -gt 0 ]]; do\n  arg=\"$1\"\n  shift\n  case \"${arg}\" in\n"
      "    --model)\n      MODEL=\"$1\"\n      shift\n      ;;\n    --rows)\n      ROWS=\"$1\"\n      shift\n      ;;\n"
      "  esac\ndone\ntrl sft --model_name_or_path \"${MODEL}\" --per_device_train_batch_size ${ROWS}\n");
  const ForeignRecipe started = read("bash tune.sh --model Qwen/Qwen2.5-0.5B\n");
  EXPECT_EQ(started.models.front(), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(started.recipe.batch, 1);
}

TEST_F(HandedOn, openrlhfs_flags_in_groups_are_those_of_before) {
  const ForeignRecipe grouped = read(
      "deepspeed --module openrlhf.cli.train_dpo --model.model_name_or_path Qwen/Qwen2.5-7B --train.micro_batch_size 2 "
      "--data.max_len 8192\n");
  EXPECT_EQ(grouped.models.front(), "Qwen/Qwen2.5-7B");
  EXPECT_EQ(grouped.recipe.batch, 2);
  EXPECT_EQ(grouped.recipe.seq_len, 8192);
}

TEST_F(HandedOn, of_several_scripts_that_are_started_the_first_that_trains_counts) {
  put("generate.sh", "python generate.py --rows 4\n");
  put("pipeline.sh", "python train.py --model_name_or_path $MODEL --per_device_train_batch_size 6 --learning_rate 1\n");
  const ForeignRecipe recipe = read("export MODEL=google/gemma-2b\nbash generate.sh --model $MODEL\nbash pipeline.sh\n");
  ASSERT_FALSE(recipe.models.empty());
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.batch, 6);
}

TEST_F(HandedOn, arguments_are_set_and_arrays_have_words_for_places) {
  const std::string train = "python train.py --model_name_or_path $1 --per_device_train_batch_size $2 --learning_rate 1\n";
  EXPECT_EQ(read("set -- google/gemma-2b 6\n" + train).recipe.batch, 6);
  const std::string arrays =
      "declare -A MODELS=([small]=google/gemma-2b [\"big\"]=\"google/gemma-7b\")\nMODELS[tiny]=a/tiny-1b\n";
  const auto of = [&](const std::string& place) {
    return read(arrays + "SIZE=big\npython train.py --learning_rate 1 --model_name_or_path " + place + "\n").models.front();
  };
  EXPECT_EQ(of("${MODELS[small]}"), "google/gemma-2b");
  EXPECT_EQ(of("\"${MODELS[$SIZE]}\""), "google/gemma-7b");
  EXPECT_EQ(of("\"${MODELS[\"$SIZE\"]}\""), "google/gemma-7b");
  EXPECT_EQ(of("${MODELS[tiny]}"), "a/tiny-1b");
}

// Branches whose condition the script itself knows; of others the last, as before.
TEST_F(HandedOn, conditions_of_a_script_are_looked_at) {
  const std::string train =
      "python train.py --model_name_or_path $M --per_device_train_batch_size $B --learning_rate 1 $EXTRA\n";
  const std::string choose =
      "M=a/small-1b B=8 EXTRA=\"\"\nif [ \"$SIZE\" = big ]; then\n  M=a/big-7b\n  B=1\nelif [[ $SIZE == mid ]]; then "
      "M=a/mid-3b\n"
      "else\n  B=16\nfi\n[ \"$LORA\" = 1 ] && EXTRA=\"--lora_r 4\"\nif [ -n \"$DEBUG\" ]; then B=64; fi\n";
  const auto with = [&](const std::string& head) { return read(head + "LORA=0\nDEBUG=\"\"\n" + choose + train); };
  EXPECT_EQ(with("SIZE=big\n").models.front(), "a/big-7b");
  EXPECT_EQ(with("SIZE=big\n").recipe.batch, 1);
  EXPECT_EQ(with("SIZE=mid\n").models.front(), "a/mid-3b");
  EXPECT_EQ(with("SIZE=mid\n").recipe.batch, 8);
  EXPECT_EQ(with("SIZE=none\n").recipe.batch, 16);
  EXPECT_EQ(with("SIZE=none\n").recipe.method, Method::full);
  EXPECT_EQ(read("SIZE=none\nLORA=1\nDEBUG=\"\"\n" + choose + train).recipe.method, Method::lora);
  const std::string pick =
      "case $SIZE in\n  big|large) M=a/big-7b; B=1;;\n  \"mid\")\n    M=a/mid-3b\n    B=2\n    ;;\n  *) M=a/small-1b; "
      "B=4;;\nesac\n";
  EXPECT_EQ(read("SIZE=large\n" + pick + train).recipe.batch, 1);
  EXPECT_EQ(read("SIZE=mid\n" + pick + train).models.front(), "a/mid-3b");
  EXPECT_EQ(read("SIZE=other\n" + pick + train).recipe.batch, 4);
  // A command in each branch.
  const std::string branches =
      "if [ $LORA = 1 ]; then\n  python train.py --model_name_or_path a/b-1b --learning_rate 1 --lora_r 4 --max_steps 9\n"
      "else\n  python train.py --model_name_or_path a/b-1b --learning_rate 1\nfi\n";
  EXPECT_EQ(read("LORA=0\n" + branches).recipe.method, Method::full);
  EXPECT_EQ(read("LORA=1\n" + branches).recipe.method, Method::lora);
  EXPECT_EQ(read("srun --mpi=none bash -c \"python train.py --model_name_or_path a/b-1b --learning_rate 1 --lora_r 4\"\n")
                .recipe.lora.r,
            4);
}

// "-n" of what nothing sets is false, of what may be set elsewhere unknown: then what it guards is read, as before.
TEST_F(HandedOn, what_nothing_sets_is_empty) {
  const std::string train =
      "python train.py --model_name_or_path a/b-1b --per_device_train_batch_size $B --learning_rate 1\n";
  const std::string guarded = "B=2\nif [ -n \"$LARGE\" ]; then B=64; fi\n[ -z \"${LARGE}\" ] || B=32\n";
  EXPECT_EQ(read(guarded + train).recipe.batch, 2);
  EXPECT_EQ(read("LARGE=$(nproc)\n" + guarded + train).recipe.batch, 32);
  EXPECT_EQ(read("source settings.sh\n" + guarded + train).recipe.batch, 32);
  EXPECT_EQ(read("read LARGE\n" + guarded + train).recipe.batch, 32);
  EXPECT_EQ(read("B=2\nif [[ -n $SLURM_JOB_ID ]]; then B=64; fi\n" + train).recipe.batch, 64);
}

// Cut off anywhere: an answer or a refusal.
TEST_F(HandedOn, scripts_that_end_anywhere_are_read_to_their_end) {
  const std::string whole =
      "M=(a/b-1b c)\nif [ \"$X\" = 1 ]; then\n  case $X in\n  --rows|b) R=${Y:-${Z}};; \\\n  esac\nfi\nO+=\" --lora_r 4\"\n"
      "[ -n \"$O\" ] && read -r W <<EOF\n--bs $X\nEOF\npython train.py --model_name_or_path ${M[0]} --learning_rate 1 $O "
      "$W\n";
  for (size_t end = 0; end <= whole.size(); ++end) {
    try {
      static_cast<void>(read_foreign_recipe(whole.substr(0, end), (directory_ / "run.sh").string()));
    } catch (const Error&) {
    }
  }
  EXPECT_EQ(read(whole).models.front(), "a/b-1b");
}

// Files that source themselves over and over, braces that never close: read in no time.
TEST_F(HandedOn, hostile_files_have_an_end) {
  std::string sources, braces;
  for (int i = 0; i < 5'000; ++i) sources += "source a.sh\n";
  for (int i = 0; i < 200'000; ++i) braces += "${";
  put("a.sh", sources + "B=3\n");
  const std::string train =
      "python train.py --model_name_or_path a/b-1b --learning_rate 1 --per_device_train_batch_size $B\n";
  EXPECT_EQ(read("source a.sh\n" + train).recipe.batch, 3);
  EXPECT_EQ(read("B=4\ncat > x.yaml << EOF\n" + braces + "\nEOF\n" + train).recipe.batch, 4);
}

TEST_F(HandedOn, lines_for_another_shell_and_loops_are_read_once) {
  for (const char* how :
       {"eval \"$CMD\"\n", "eval $CMD\n", "bash -c \"${CMD}\" > log 2>&1\n", "nohup bash -c \"$CMD\" &\n"}) {
    const ForeignRecipe recipe = read(std::string("CMD=\"python train.py --model_name_or_path a/b-1b --learning_rate 1\"\n"
                                                  "CMD=\"$CMD --per_device_train_batch_size 6 && echo done\"\n") +
                                      how);
    ASSERT_FALSE(recipe.models.empty()) << how;
    EXPECT_EQ(recipe.models.front(), "a/b-1b") << how;
    EXPECT_EQ(recipe.recipe.batch, 6) << how;
  }
  const ForeignRecipe loop = read(
      "for B in 5 9; do\n  python train.py --model_name_or_path a/b-1b --per_device_train_batch_size $B --lr 1\ndone\n");
  EXPECT_EQ(loop.recipe.batch, 5);
}

TEST_F(HandedOn, of_a_line_in_a_variable_the_words_are_read_that_need_no_shell) {
  const std::string train = "train.py --model_name_or_path a/b-1b --learning_rate 1";
  const std::string line = "OUT=runs/$(date +%Y)\nCMD=\"torchrun " + train +
                           " \\\n  --output_dir ${OUT}/${USER}\"\n"
                           "CMD=\"${CMD} --per_device_train_batch_size 6\"\nCMD+=\" --run_name $RUN\"\n";
  for (const char* how : {"eval ${CMD}\n", "nohup bash -c \"${CMD}\" >> log 2>&1 &\n", "$CMD\n", "eval ${GIVEN:-$CMD}\n"}) {
    const ForeignRecipe recipe = read(line + how);
    ASSERT_FALSE(recipe.models.empty()) << how;
    EXPECT_EQ(recipe.models.front(), "a/b-1b") << how;
    EXPECT_EQ(recipe.recipe.batch, 6) << how;
  }
  // Given anew it is known whole; of a value that is no line nothing is known.
  const std::string batch = "\npython " + train + " --per_device_train_batch_size $B\n";
  EXPECT_EQ(read("B=\"$N 4\"\nB=7" + batch).recipe.batch, 7);
  EXPECT_EQ(read("B=$N" + batch).recipe.batch, 8);
}

TEST_F(HandedOn, a_file_of_keys_goes_on_from_another) {
  std::filesystem::create_directories(directory_ / "configs");
  put("configs/base.yaml", "model: {base_model: a/b-1b, max_seq_length: 96}\ntraining: {batch_size: 2, epochs: 1}\n");
  const std::string own = "inherits: configs/base.yaml\nmethod: lora\nlora: {r: 4}\ntraining: {batch_size: 3, lr: 1e-4}\n";
  for (const std::filesystem::path& where : {directory_ / "run.yaml", directory_ / "configs" / "lora.yaml"}) {
    const ForeignRecipe recipe = foreign(own, where.string());
    ASSERT_FALSE(recipe.models.empty());
    EXPECT_EQ(recipe.models.front(), "a/b-1b");
    EXPECT_EQ(recipe.recipe.batch, 3);
    EXPECT_EQ(recipe.recipe.seq_len, 96);
    EXPECT_EQ(recipe.recipe.lora.r, 4);
    EXPECT_TRUE(says(recipe, "read beside it: configs/base.yaml"));
  }
  std::filesystem::create_directories(directory_ / "model");
  put("model/tiny.yaml", "name: a/tiny-1b\nmax_length: 80\n");
  const ForeignRecipe groups = foreign("defaults:\n  - model: tiny\n  - _self_\nlr: 1\nepochs: 1\nbatch_size: 4\n",
                                       (directory_ / "sft.yaml").string());
  ASSERT_FALSE(groups.models.empty());
  EXPECT_EQ(groups.models.front(), "a/tiny-1b");
  EXPECT_EQ(groups.recipe.seq_len, 80);
  put("round.yaml", "inherits: round.yaml\nmodel: {name: a/b-1b}\nlr: 1\nepochs: 1\nbatch_size: 4\n");
  EXPECT_EQ(foreign(text_of(directory_ / "round.yaml"), (directory_ / "round.yaml").string()).recipe.batch, 4);
}

// Hydra's groups, of which an experiment below overrides one.
TEST_F(HandedOn, groups_stand_above_what_overrides_them) {
  std::filesystem::create_directories(directory_ / "configs/model");
  std::filesystem::create_directories(directory_ / "configs/experiment");
  put("configs/model/small.yaml", "model_args:\n  pretrained_model_name_or_path: Qwen/Qwen2.5-0.5B\n");
  const std::string text =
      "defaults:\n  - override /model: small\ntrainer:\n  args:\n    learning_rate: 1e-5\n    num_train_epochs: 5\n"
      "    per_device_train_batch_size: 7\n    gradient_accumulation_steps: 2\n";
  const ForeignRecipe recipe = foreign(text, (directory_ / "configs/experiment/run.yaml").string());
  ASSERT_FALSE(recipe.models.empty());
  EXPECT_EQ(recipe.models.front(), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(recipe.recipe.batch, 7);
}

TEST_F(HandedOn, what_is_not_there_or_holds_no_keys_is_named) {
  EXPECT_EQ(read("llamafactory-cli train train.yaml\n").keys_in, "train.yaml");
  put("train.yaml", "- a\n- [");
  EXPECT_EQ(read("llamafactory-cli train train.yaml\n").keys_in, "train.yaml");
  EXPECT_EQ(read("cat > other.yaml <<EOF\n" + kKeys + "EOF\nllamafactory-cli train train.yaml\n").keys_in, "train.yaml");
  try {
    read_foreign_recipe("export MODEL=a/b\nbash scripts/train_sft.sh\n", "run.sh");
    FAIL() << "it trains nothing itself";
  } catch (const Error& error) {
    EXPECT_EQ(error.problem(), "what trains is in scripts/train_sft.sh");
  }
}

// The file is another: a word of the command holds over what it says, where the trainer takes one.
TEST_F(HandedOn, changes_are_words_of_the_command) {
  put("train.yaml", kKeys);
  const std::string where = (directory_ / "run.sh").string();
  const std::vector<RecipeChange> changes = {{"max_length", "320"}};
  const RecipePatch pairs = change_foreign_recipe("llamafactory-cli train train.yaml lora_alpha=4\n", where, changes);
  EXPECT_EQ(pairs.text, "llamafactory-cli train train.yaml lora_alpha=4 cutoff_len=320\n");
  EXPECT_EQ(read(pairs.text).recipe.seq_len, 320);
  put("swift.yaml", "model: Qwen/Qwen2.5-0.5B\ntrain_type: lora\ndataset: a\nmax_length: 96\n");
  const RecipePatch flags = change_foreign_recipe("swift sft --config swift.yaml --lora_rank 4\n", where, changes);
  EXPECT_EQ(flags.text, "swift sft --config swift.yaml --lora_rank 4 --max_length 320\n");
  const RecipePatch none = change_foreign_recipe("llamafactory-cli train train.yaml\n", where, changes);
  ASSERT_EQ(none.unsaid.size(), 1U);
  EXPECT_EQ(none.unsaid[0].key, "max_length");
}

}  // namespace

}  // namespace snug::testing
