#include <algorithm>

#include "base/error.h"
#include "recipe/dialects/changes.h"
#include "support_dialects.h"

namespace snug {
namespace {

// As litgpt's own configs are laid out: every block there, empty values where a default holds.
constexpr const char* kQlora = R"(# A model that `litgpt download` fetched
checkpoint_dir: checkpoints/meta-llama/Llama-3.2-1B
out_dir: out/finetune/mine
precision: bf16-true
quantize: bnb.nf4-dq
devices: 1
num_nodes: 1
lora_r: 24
lora_alpha: 48
lora_dropout: 0.1
lora_query: true
lora_key: true
lora_value: false
lora_projection: false
lora_mlp: true
lora_head: false
data:
  class_path: litgpt.data.JSON
  init_args:
    json_path: ./rows.json
    mask_prompt: true
    prompt_style: alpaca
train:
  save_interval: 300
  log_interval: 1
  global_batch_size: 12
  micro_batch_size: 3
  lr_warmup_steps: 20
  epochs: 2
  max_tokens:
  max_steps:
  max_seq_length: 640
  max_norm:
  min_lr: 6.0e-05
eval:
  interval: 100
  max_new_tokens: 100
logger_name: csv
seed: 7
optimizer:
  class_path: torch.optim.AdamW
  init_args:
    lr: 0.0003
    weight_decay: 0.02
    betas:
      - 0.9
      - 0.95
)";

TEST(LitGptRecipes, EveryKeyOfAConfigIsAccountedFor) {
  const ForeignRecipe read = foreign(kQlora);
  EXPECT_EQ(read.dialect, Dialect::litgpt);
  EXPECT_EQ(read.models,
            (std::vector<std::string>{"meta-llama/Llama-3.2-1B", "checkpoints/meta-llama/Llama-3.2-1B", "Llama-3.2-1B"}));
  EXPECT_EQ(read.recipe.method, Method::lora);
  EXPECT_EQ(value_of(read.recipe, "lora_target_modules"), "q_proj,k_proj,gate_proj,up_proj,down_proj");
  EXPECT_EQ(read.recipe.lora.r, 24);
  EXPECT_EQ(read.recipe.lora.alpha, 48.0);
  EXPECT_TRUE(read.recipe.quantize.in_4bit);
  EXPECT_EQ(value_of(read.recipe, "bnb_4bit_use_double_quant"), "true");
  EXPECT_EQ(value_of(read.recipe, "optim"), "paged_adamw_32bit");  // whatever class the file names
  EXPECT_TRUE(read.recipe.bf16);
  EXPECT_EQ(read.recipe.batch, 3);
  EXPECT_EQ(read.recipe.accumulation, 4);
  EXPECT_EQ(read.recipe.seq_len, 640);
  EXPECT_EQ(read.recipe.learning_rate, 3e-4);
  EXPECT_EQ(read.recipe.warmup_steps, 20);
  EXPECT_EQ(value_of(read.recipe, "max_grad_norm"), "0");
  EXPECT_TRUE(read.recipe.completion_only_loss);
  EXPECT_EQ(read.data, std::vector<std::string>{"./rows.json"});
  EXPECT_EQ(read.eval_batch, 3);
  EXPECT_TRUE(read.unmodelled.empty());
  EXPECT_TRUE(read.named(KeyFate::unknown).empty());
  EXPECT_TRUE(read.named(KeyFate::touches_memory).empty());
}

TEST(LitGptRecipes, AFileWithoutLoraTrainsEveryWeightInThePrecisionThatItNames) {
  const std::string text =
      "checkpoint_dir: checkpoints/a/b\nprecision: bf16-true\ndevices: 1\ntrain:\n  global_batch_size: 8\n"
      "  micro_batch_size: 2\n  max_seq_length: 512\n";
  const ForeignRecipe read = foreign(text);
  EXPECT_EQ(read.recipe.method, Method::full);
  EXPECT_EQ(value_of(read.recipe, "master_weights"), "false");
  EXPECT_EQ(value_of(read.recipe, "optim"), "adamw_torch");
  EXPECT_FALSE(read.recipe.gradient_checkpointing);
  const ForeignRecipe spread = foreign(text + "num_nodes: 2\n");
  EXPECT_EQ(spread.gpus, 2);
  EXPECT_EQ(spread.sharding, Sharding::fsdp);
  EXPECT_EQ(spread.recipe.accumulation, 2);
  EXPECT_TRUE(spread.recipe.gradient_checkpointing);  // each block, where there are several devices
}

TEST(LitGptRecipes, MixedPrecisionIsWhatHoldsWhereNoneIsGiven) {
  const char* text = "checkpoint_dir: checkpoints/a/b\nlora_r: 4\ntrain:\n  micro_batch_size: 2\n  max_seq_length: 256\n";
  const ForeignRecipe read = foreign(text);
  EXPECT_TRUE(read.recipe.bf16);
  EXPECT_EQ(read.unmodelled, "LitGPT in mixed precision");
  EXPECT_TRUE(std::ranges::any_of(read.notes, [](const std::string& note) { return note.find("float32") != note.npos; }));
  EXPECT_EQ(read.recipe.accumulation, 8);  // global_batch_size 16
  EXPECT_EQ(value_of(read.recipe, "lora_target_modules"), "q_proj,v_proj");
}

TEST(LitGptRecipes, PhisModulesHaveNamesOfTheirOwn) {
  const std::string rest = "\nlora_projection: true\nlora_mlp: true\ntrain:\n  micro_batch_size: 2\n";
  EXPECT_EQ(value_of(foreign("checkpoint_dir: checkpoints/microsoft/phi-2" + rest).recipe, "lora_target_modules"),
            "q_proj,v_proj,dense,fc1,fc2");
  EXPECT_EQ(
      value_of(foreign("checkpoint_dir: checkpoints/microsoft/Phi-3-mini-4k-instruct" + rest).recipe, "lora_target_modules"),
      "qkv_proj,o_proj,gate_up_proj,down_proj");
}

TEST(LitGptRecipes, ACommandIsReadWithItsModel) {
  const ForeignRecipe read = foreign(
      "litgpt finetune meta-llama/Llama-3.2-1B \\\n  --data JSON \\\n  --data.json_path ./rows.json \\\n"
      "  --train.micro_batch_size 2 \\\n  --train.max_seq_length 384 --quantize bnb.nf4 --precision bf16-true\n",
      "r.sh");
  EXPECT_EQ(read.dialect, Dialect::litgpt);
  EXPECT_EQ(read.recipe.model, "meta-llama/Llama-3.2-1B");
  EXPECT_EQ(read.recipe.method, Method::lora);  // "finetune" is finetune_lora
  EXPECT_EQ(read.recipe.batch, 2);
  EXPECT_EQ(read.recipe.seq_len, 384);
  EXPECT_TRUE(read.recipe.quantize.in_4bit);
  EXPECT_EQ(read.data, std::vector<std::string>{"./rows.json"});
  EXPECT_TRUE(read.named(KeyFate::unknown).empty());
  EXPECT_EQ(foreign("litgpt finetune_full a/b --train.micro_batch_size 2\n", "r.sh").recipe.method, Method::full);
  const char* plain = "litgpt finetune a/b --optimizer SGD --train.micro_batch_size 2 --precision bf16-true\n";
  EXPECT_EQ(value_of(foreign(plain, "r.sh").recipe, "optim"), "sgd");
  EXPECT_THROW(foreign("litgpt serve a/b --port 8000\n", "r.sh"), Error);
}

TEST(LitGptRecipes, ChangesAreWrittenInItsOwnWords) {
  const RecipeChange changes[] = {{"per_device_train_batch_size", "1"},
                                  {"gradient_accumulation_steps", "12"},
                                  {"max_length", "320"},
                                  {"lora_r", "8"},
                                  {"gradient_checkpointing", "true"}};
  const RecipePatch patch = change_foreign_recipe(kQlora, "r.yaml", changes);
  const ForeignRecipe again = foreign(patch.text);
  EXPECT_EQ(again.recipe.batch, 1);
  EXPECT_EQ(again.recipe.accumulation, 12);
  EXPECT_EQ(again.recipe.seq_len, 320);
  EXPECT_EQ(again.recipe.lora.r, 8);
  ASSERT_EQ(patch.unsaid.size(), 1U);
  EXPECT_EQ(patch.unsaid[0].key, "gradient_checkpointing");  // one device has no word for it
}

}  // namespace
}  // namespace snug
