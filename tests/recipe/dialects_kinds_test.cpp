// Kinds of files besides the usual: second generations, trainers that count otherwise, and files that train nothing.

#include <algorithm>

#include "base/error.h"
#include "support_dialects.h"

namespace snug {
namespace {

const ForeignKey& expect_touching(const ForeignRecipe& read, const std::string& name) {
  const ForeignKey& key = key_named(read, name);
  EXPECT_EQ(key.fate, KeyFate::touches_memory) << name;
  EXPECT_FALSE(key.refusal.empty()) << name;
  return key;
}

TEST(AutoTrainRecipes, BlocksAreReadWithItsDefaults) {
  const ForeignRecipe read = foreign(R"(task: llm-sft
base_model: a/b
project_name: mine
log: none
data:
  path: d/e
  column_mapping:
    text_column: text
params:
  block_size: 768
  batch_size: 3
  peft: true
  mixed_precision: bf16
  optimizer: paged_adamw_8bit
  gradient_accumulation: 5
hub:
  push_to_hub: false
)");
  EXPECT_EQ(read.dialect, Dialect::autotrain);
  EXPECT_EQ(read.recipe.model, "a/b");
  EXPECT_EQ(read.recipe.method, Method::lora);
  EXPECT_TRUE(read.recipe.quantize.in_4bit);  // int4 below an adapter
  EXPECT_TRUE(read.recipe.packing);           // sft packs
  EXPECT_TRUE(read.recipe.bf16);
  EXPECT_TRUE(read.recipe.gradient_checkpointing);
  EXPECT_EQ(read.recipe.seq_len, 768);
  EXPECT_EQ(read.recipe.batch, 3);
  EXPECT_EQ(read.recipe.accumulation, 5);
  EXPECT_EQ(read.recipe.lora.r, 16);
  EXPECT_EQ(value_of(read.recipe, "optim"), "paged_adamw_8bit");
  EXPECT_EQ(read.data, std::vector<std::string>{"d/e"});
  EXPECT_TRUE(read.named(KeyFate::unknown).empty());
}

TEST(AutoTrainRecipes, OtherTasksAreNamed) {
  const ForeignRecipe orpo = foreign("task: llm-orpo\nbase_model: a/b\nparams:\n  quantization: int8\n  peft: true\n");
  EXPECT_EQ(orpo.stage, "orpo");
  EXPECT_TRUE(orpo.recipe.quantize.in_8bit);
  EXPECT_FALSE(orpo.recipe.packing);
  EXPECT_EQ(orpo.recipe.seq_len, 1024);
  expect_touching(orpo, "task");
  expect_touching(foreign("task: text-classification\nbase_model: a/b\nparams:\n  epochs: 2\n"), "task");
}

TEST(LlamaFactoryV1, PluginsInBlocks) {
  const ForeignRecipe read = foreign(R"(model: a/b
model_class: llm
peft_config:
  name: lora
  r: 12
  target_modules: all
quant_config:
  name: bnb
  quantization_bit: 4
dist_config:
  name: fsdp2
train_dataset: mine.yaml
micro_batch_size: 2
global_batch_size: 12
cutoff_len: 640
)");
  EXPECT_EQ(read.dialect, Dialect::llama_factory_v1);
  EXPECT_EQ(read.recipe.method, Method::lora);
  EXPECT_EQ(read.recipe.lora.r, 12);
  EXPECT_EQ(read.recipe.lora.target_modules, std::vector<std::string>{"all-linear"});
  EXPECT_TRUE(read.recipe.quantize.in_4bit);
  EXPECT_EQ(read.recipe.batch, 2);
  EXPECT_EQ(read.recipe.accumulation, 6);
  EXPECT_EQ(read.recipe.seq_len, 640);
  EXPECT_TRUE(read.recipe.gradient_checkpointing);
  EXPECT_EQ(read.sharding, Sharding::fsdp);
  expect_touching(read, "dist_config.name");
  EXPECT_TRUE(read.named(KeyFate::unknown).empty());
  const ForeignRecipe full = foreign("model: a/b\ntrain_dataset: d\nmicro_batch_size: 1\npeft_config: null\n");
  EXPECT_EQ(full.recipe.method, Method::full);
}

TEST(MegatronSwift, CountsTheWholeBatchOverItsCopies) {
  const ForeignRecipe read = foreign(
      "NPROC_PER_NODE=8 CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 \\\nmegatron sft --load some/Qwen3-8B-mcore --dataset d \\\n"
      "  --tensor_model_parallel_size 2 --pipeline_model_parallel_size 2 --micro_batch_size 2 --global_batch_size 32 \\\n"
      "  --recompute_granularity full --recompute_method uniform --recompute_num_layers 1 --max_length 4096 \\\n"
      "  --tuner_type lora --lora_rank 4 --packing true --lr 1e-4 --train_iters 20\n",
      "run.sh");
  EXPECT_EQ(read.dialect, Dialect::megatron_swift);
  EXPECT_EQ(read.models.front(), "Qwen3-8B");
  EXPECT_EQ(read.recipe.batch, 2);
  EXPECT_EQ(read.recipe.accumulation, 8);  // 32 over two copies of four devices, two rows each
  EXPECT_TRUE(read.recipe.gradient_checkpointing);
  EXPECT_EQ(read.recipe.lora.r, 4);
  EXPECT_TRUE(read.recipe.packing);
  EXPECT_EQ(read.recipe.max_steps, 20);
  expect_touching(read, "tensor_model_parallel_size");
  EXPECT_TRUE(read.named(KeyFate::unknown).empty());
}

TEST(MegatronSwift, SelectiveRecomputationKeepsTheBlocks) {
  const std::string head = "model: a/b\nmicro_batch_size: 1\ntensor_model_parallel_size: 1\nrecompute_granularity: ";
  EXPECT_FALSE(foreign(head + "selective\n").recipe.gradient_checkpointing);
  EXPECT_EQ(foreign(head + "selective\n").recipe.accumulation, 16);
  EXPECT_EQ(foreign(head + "selective\n").recipe.method, Method::full);
  expect_touching(foreign(head + "full\nrecompute_method: block\nrecompute_num_layers: 4\n"), "recompute_method");
  expect_touching(foreign(head + "full\nrecompute_method: uniform\nrecompute_num_layers: 4\n"), "recompute_num_layers");
  expect_touching(foreign(head + "full\noptimizer: muon\n"), "optimizer");
}

TEST(MegatronSwift, ModulesByItsOwnNames) {
  const ForeignRecipe read = foreign(
      "megatron sft --model a/b --micro_batch_size 1 --tuner_type lora --target_modules linear_qkv linear_fc2 "
      "--modules_to_save word_embeddings output_layer --max_length 64\n",
      "run.sh");
  EXPECT_EQ(read.recipe.lora.target_modules, (std::vector<std::string>{"q_proj", "k_proj", "v_proj", "down_proj"}));
  EXPECT_EQ(read.recipe.lora.modules_to_save, (std::vector<std::string>{"embed_tokens", "lm_head"}));
  const ForeignRecipe more = foreign(
      "megatron sft --model a/b --micro_batch_size 1 --tuner_type lora --target_modules all-linear all-router\n", "r.sh");
  EXPECT_EQ(more.recipe.lora.target_modules, std::vector<std::string>{"all-linear"});
  expect_touching(more, "target_modules");
}

TEST(Torchtune, ABuilderOfTheUsersOwnIsLoraIfItTakesItsModules) {
  const std::string text = "epochs: 1\nmodel:\n  _component_: mine.builders.small\n";
  EXPECT_EQ(foreign(text).recipe.method, Method::full);
  EXPECT_EQ(foreign(text + "  lora_attn_modules: [q_proj]\n  lora_rank: 2\n").recipe.method, Method::lora);
}

TEST(Torchtune, PhisProjectionsStandTogether) {
  const ForeignRecipe read = foreign(
      "model:\n  _component_: torchtune.models.phi3.lora_phi3_mini\n  lora_attn_modules: [q_proj, v_proj, output_proj]\n"
      "  apply_lora_to_mlp: True\nepochs: 1\n");
  EXPECT_EQ(read.recipe.lora.target_modules, (std::vector<std::string>{"qkv_proj", "o_proj", "gate_up_proj", "down_proj"}));
}

TEST(SwiftRecipes, KeysOfItsSecondGeneration) {
  const ForeignRecipe read = foreign(
      "nproc_per_node=2\ntorchrun --nproc_per_node=$nproc_per_node llm_sft.py --model_type qwen-7b-chat --sft_type lora \\\n"
      "  --dtype AUTO --lora_target_modules DEFAULT --lora_dropout_p 0.1 --bnb_4bit_comp_dtype AUTO --batch_size 3 \\\n"
      "  --use_flash_attn false --deepspeed_config_path ds/zero2.json --dataset d\n",
      "sft.sh");
  EXPECT_EQ(read.dialect, Dialect::swift);
  EXPECT_EQ(read.models, std::vector<std::string>{"qwen-7b-chat"});
  EXPECT_EQ(read.recipe.batch, 3);
  EXPECT_EQ(read.recipe.lora.target_modules, (std::vector<std::string>{"q_proj", "k_proj", "v_proj"}));
  EXPECT_DOUBLE_EQ(read.recipe.lora.dropout, 0.1);
  EXPECT_EQ(read.sharding, Sharding::zero2);
  EXPECT_TRUE(read.named(KeyFate::unknown).empty());
  EXPECT_EQ(foreign("swift dpo --model_id_or_path a/b --sft_type lora --dataset d\n", "dpo.sh").stage, "dpo");
}

TEST(Dialects, ALaunchersKeysHideNoAxolotl) {
  const ForeignRecipe read = foreign(
      "gpu: 8\nmemory: \"500Gi\"\nbase_model: a/b\ndatasets: []\nsequence_len: 64\nmicro_batch_size: 2\nadapter: lora\n");
  EXPECT_EQ(read.dialect, Dialect::axolotl);
  EXPECT_EQ(read.named(KeyFate::unknown), (std::vector<std::string>{"gpu", "memory"}));
}

TEST(Dialects, AMappingMayHaveAnEmptyKey) {
  const ForeignRecipe read =
      foreign("base_model: a/b\nsequence_len: 64\nadapter: lora\ndevice_map:\n  \"\": 0\nmicro_batch_size: 2\n");
  EXPECT_EQ(read.recipe.batch, 2);
  expect_touching(read, "device_map");
}

TEST(Dialects, BothHalvesOfPrecisionAtOnce) {
  const std::string head = "base_model: a/b\nsequence_len: 64\nadapter: lora\nfp16: true\n";
  EXPECT_TRUE(foreign(head + "bf16: auto\n").recipe.fp16);
  EXPECT_FALSE(foreign(head + "bf16: auto\n").recipe.bf16);
  const ForeignRecipe both = foreign(head + "bf16: true\n");
  EXPECT_TRUE(both.recipe.bf16);
  EXPECT_FALSE(both.recipe.fp16);
  EXPECT_EQ(both.notes.back(), "bf16 and fp16 are both on: planned in bf16");
  EXPECT_NO_THROW(validate(both.recipe));
}

TEST(Dialects, TrainersOfTorchtuneAloneAreRecipes) {
  const std::string model = "model:\n  _component_: torchtune.models.qwen2_5.qwen2_5_7b_instruct\n";
  EXPECT_FALSE(read_foreign_recipe(model + "max_new_tokens: 20\nprompt: hello\n", "r.yaml"));
  EXPECT_TRUE(read_foreign_recipe(model + "epochs: 1\n", "r.yaml"));
  const ForeignRecipe grpo = foreign(
      model + "training:\n  batch_size: 4\n  optimizer:\n    _component_: torch.optim.AdamW\ninference:\n  top_k: 1\n");
  EXPECT_EQ(grpo.recipe.batch, 4);
  expect_touching(grpo, "inference");
}

TEST(Dialects, TrainingArgumentsAsJson) {
  const ForeignRecipe read = foreign(
      "{\"output_dir\": \"o\", \"per_device_train_batch_size\": 4, \"gradient_accumulation_steps\": 2, \"bf16\": true, "
      "\"gradient_checkpointing\": true, \"optim\": \"adafactor\", \"deepspeed\": \"zero2.json\"}",
      "args.json");
  EXPECT_EQ(read.dialect, Dialect::hugging_face);
  EXPECT_EQ(read.recipe.batch, 4);
  EXPECT_EQ(read.recipe.accumulation, 2);
  EXPECT_TRUE(read.recipe.gradient_checkpointing);
  EXPECT_EQ(read.sharding, Sharding::zero2);
  EXPECT_TRUE(read.models.empty());
}

TEST(Strangers, AreCalledByTheirNames) {
  const auto what = [](const std::string& text, const std::string& where) {
    const dialects::Document document = dialects::read_document(text, where);
    EXPECT_FALSE(recognise(document)) << text;
    return what_else(document);
  };
  EXPECT_EQ(what("{\"zero_optimization\": {\"stage\": 3}, \"bf16\": {\"enabled\": true}, \"fp16\": {\"enabled\": false}, "
                 "\"gradient_accumulation_steps\": 2}",
                 "ds.json"),
            "a DeepSpeed configuration");
  EXPECT_EQ(what("distributed_type: FSDP\nnum_processes: 8\n", "acc.yaml"), "an accelerate configuration");
  EXPECT_EQ(what("{\"fsdp\": \"full_shard\", \"fsdp_config\": {\"version\": 2}}", "fsdp.json"), "an FSDP configuration");
  EXPECT_EQ(recognise(dialects::read_document(
                R"({"fsdp": "full_shard", "fsdp_config": {}, "per_device_train_batch_size": 2})", "arguments.json")),
            Dialect::hugging_face);
  EXPECT_EQ(what("model_name_or_path: a/b\ntemplate: t\nexport_dir: out\n", "m.yaml"), "for merging or exporting a model");
  EXPECT_EQ(what("model_name_or_path: a/b\ntemplate: t\ninfer_backend: hf\n", "i.yaml"), "for generating text");
  EXPECT_EQ(what("{\"mine\": {\"file_name\": \"a.json\"}}", "dataset_info.json"), "a list of data sets");
  EXPECT_EQ(what("apiVersion: v1\nkind: Pod\n", "pod.yaml"), "a Kubernetes manifest");
  EXPECT_EQ(what("model_name_or_path: a/b\nstage: sft\nfinetuning_type: lora\ndo_predict: true\ntemplate: t\ndataset: d\n",
                 "p.yaml"),
            "for prediction, not for training");
  EXPECT_EQ(what("python train.py --pretrained_model_name_or_path a/b --resolution 512 --learning_rate 1 --output_dir o\n",
                 "sd.sh"),
            "for training a model of images");
  EXPECT_EQ(what("key: value\n", "none.yaml"), "");
}

std::string refused(const std::string& script) {
  try {
    static_cast<void>(dialects::read_shell(script, "run.sh"));
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ShellRecipes, CommandsThatDoNotTrainAreNamed) {
  EXPECT_NE(refused("swift infer --model a/b\n").find("runs swift infer, which does not train"), std::string::npos);
  EXPECT_NE(refused("CUDA_VISIBLE_DEVICES=0 python src/export_model.py --model_name_or_path a/b\n").find("export_model.py"),
            std::string::npos);
  // Of several commands the one that trains counts.
  EXPECT_EQ(
      foreign("swift sft --model a/b --train_type lora --dataset d\nswift infer --adapters out\n", "run.sh").recipe.model,
      "a/b");
}

TEST(ShellRecipes, AProgramOfAnUnknownKindIsNoTrainer) {
  EXPECT_FALSE(
      read_foreign_recipe("torchrun main.py --model_config c.json --lr 0.01 --batch_size 8 --optimizer mine\n", "r.sh"));
  const ForeignRecipe read = foreign("torchrun --nproc_per_node 4 train.py keys/mine.yaml\n", "run.sh");
  EXPECT_EQ(read.keys_in, "keys/mine.yaml");
}

TEST(ShellRecipes, BlanksBehindABackslashAreReadAsTheyAreMeant) {
  const ForeignRecipe read = foreign(
      "swift sft \\\t\n    --model a/b \\    # the small one\n    --train_type lora --dataset d \\\n    --lora_rank 4\n",
      "run.sh");
  EXPECT_EQ(read.recipe.model, "a/b");
  EXPECT_EQ(read.recipe.lora.r, 4);
  EXPECT_TRUE(std::any_of(read.notes.begin(), read.notes.end(),
                          [](const std::string& note) { return note.starts_with("line 1: blanks"); }));
}

}  // namespace
}  // namespace snug
