#include "recipe/keys.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"

namespace snug {
namespace {

std::string key_refusal(const std::string& key, const std::string& value) {
  Recipe recipe;
  try {
    apply(recipe, key, value, "recipe.yaml:3");
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("recipe.yaml:3: "), 0U) << error.what();
    return error.what();
  }
  return "accepted";
}

bool key_says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos || (ADD_FAILURE() << message << " does not say " << part, false);
}

TEST(Keys, EveryNameAndAliasIsUniqueAndExplained) {
  std::set<std::string_view> names;
  for (const Key& key : recipe_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    for (const std::string_view alias : key.aliases) EXPECT_TRUE(names.insert(alias).second) << alias;
    EXPECT_TRUE(key.help.ends_with('.')) << key.name;
    EXPECT_FALSE(key.values.empty()) << key.name;
  }
}

TEST(Keys, EveryDefaultIsTakenBackByItsOwnKey) {
  for (const Key& key : recipe_keys()) {
    if (!key.get) continue;
    Recipe recipe;
    EXPECT_EQ(apply(recipe, key.name, key.default_text()), Applied::set) << key.name;
    EXPECT_EQ(key.get(recipe), key.default_text()) << key.name;
  }
}

TEST(Keys, AliasesAndDashesNameTheSameKey) {
  Recipe recipe;
  apply(recipe, "batch", "4");
  apply(recipe, "max-seq-length", "2048");
  apply(recipe, "accum", "8");
  apply(recipe, "lr", "2e-4");
  apply(recipe, "base_model", "SmolLM2-135M");
  apply(recipe, "lora_rank", "16");
  apply(recipe, "target_modules", "q_proj, v_proj");
  EXPECT_EQ(recipe.batch, 4);
  EXPECT_EQ(recipe.seq_len, 2048);
  EXPECT_EQ(recipe.accumulation, 8);
  EXPECT_EQ(recipe.learning_rate, 2e-4);
  EXPECT_EQ(recipe.model, "SmolLM2-135M");
  EXPECT_EQ(recipe.lora.r, 16);
  EXPECT_EQ(recipe.lora.target_modules, (std::vector<std::string>{"q_proj", "v_proj"}));
}

TEST(Keys, BooleansStandAloneOrWithAWord) {
  for (const char* yes : {"", "true", "True", "yes", "1", "on"}) {
    Recipe recipe;
    apply(recipe, "bf16", yes);
    EXPECT_TRUE(recipe.bf16) << yes;
  }
  for (const char* no : {"false", "no", "0", "FALSE"}) {
    Recipe recipe;
    apply(recipe, "packing", no);
    EXPECT_FALSE(recipe.packing) << no;
  }
  key_says(key_refusal("bf16", "maybe"), "bf16 must be true or false, not 'maybe'");
}

TEST(Keys, ValuesOutOfRangeAreRefused) {
  key_says(key_refusal("batch", "0"), "per_device_train_batch_size must be a whole number from 1");
  key_says(key_refusal("batch", "2.5"), "not '2.5'");
  key_says(key_refusal("batch", "99999999999999999999"), "per_device_train_batch_size");
  key_says(key_refusal("seq", "1"), "max_length");
  key_says(key_refusal("learning_rate", "0"), "learning_rate");
  key_says(key_refusal("learning_rate", "nan"), "learning_rate");
  key_says(key_refusal("learning_rate", "1e999"), "learning_rate");
  key_says(key_refusal("adam_beta2", "1"), "adam_beta2");
  key_says(key_refusal("warmup_ratio", "1.5"), "warmup_ratio");
  key_says(key_refusal("seed", "-1"), "seed");
  key_says(key_refusal("max_steps", "0"), "max_steps is 0");
  key_says(key_refusal("memory", "24G"), "24GB (decimal)");
  key_says(key_refusal("lora_target_modules", "q_proj,,v_proj"), "empty item");
  key_says(key_refusal("checkpoint_layers", "3,1"), "rising order");
}

TEST(Keys, AnUnknownKeyIsAnsweredWithTheNearest) {
  key_says(key_refusal("learning_rat", "1"), "did you mean 'learning_rate'?");
  key_says(key_refusal("micro_batchsize", "1"), "did you mean 'per_device_train_batch_size'?");
  key_says(key_refusal("dropout", "1"), "did you mean 'lora_dropout'?");
  key_says(key_refusal("scheduler", "cosine"), "did you mean 'lr_scheduler_type'?");
  for (const char* unlike : {"system", "promt", "x"}) key_says(key_refusal(unlike, "1"), "`snug help keys` lists them");
  EXPECT_NE(key_refusal(std::string(100000, 'x'), "1"), "accepted");
}

TEST(Keys, WhatIsNotSupportedIsRefusedByNameOnlyWhenOn) {
  for (const char* key : {"fp8", "lora_bias"}) {
    EXPECT_EQ(key_refusal(key, "false"), "accepted") << key;
    key_says(key_refusal(key, "true"), "supported");
  }
  key_says(key_refusal("quantization_bit", "3"), "choose 4 or 8");
  key_says(key_refusal("quantization_method", "gptq"), "choose bnb");
  key_says(key_refusal("lora_dropout", "1"), "lora_dropout must be");
  key_says(key_refusal("neftune_noise_alpha", "-5"), "neftune_noise_alpha must be");
  key_says(key_refusal("deepspeed", "ds_z3.json"), "several devices");
  key_says(key_refusal("optim", "paged_adagrad"), "is not known");
  key_says(key_refusal("optim", "adamm"), "is not known");
  key_says(key_refusal("optim_args", "momentum=0.9,nesterov=true"), "optim_args 'nesterov=true' is not supported");
  key_says(key_refusal("optim_args", "momentum=1"), "momentum");
  key_says(key_refusal("lr_scheduler_type", "reduce_lr_on_plateau"), "not supported yet");
}

TEST(Keys, PatternsGiveModulesRanksAndAlphasOfTheirOwn) {
  Recipe recipe;
  apply(recipe, "rank_pattern", "q_proj=16,layers.0.mlp=4");
  EXPECT_EQ(recipe.lora.rank_pattern, (PathPatterns<int64_t>{{"q_proj", 16}, {"layers.0.mlp", 4}}));
  EXPECT_EQ(find_key("rank_pattern")->get(recipe), "q_proj=16,layers.0.mlp=4");
  apply(recipe, "rank_pattern", "");
  EXPECT_TRUE(recipe.lora.rank_pattern.empty());
  apply(recipe, "alpha_pattern", R"(^model\.layers.1.self_attn.q_proj=2.5)");
  EXPECT_EQ(recipe.lora.alpha_pattern.at(0).second, 2.5);
  key_says(key_refusal("rank_pattern", "q_proj"), "must be pairs such as q_proj=16");
  key_says(key_refusal("rank_pattern", "q_proj=0"), "rank_pattern must be");
  key_says(key_refusal("rank_pattern", "q_proj=2,q_proj=3"), "names 'q_proj' twice");
  for (const char* key : {"layers.[0-9]", ".*q_proj", "(q|k)_proj", "q_proj$", "\\d", "", "^"})
    key_says(key_refusal("alpha_pattern", std::string(key) + "=2"), "regular expression");
}

// As Python's re.match(rf"(.*\.)?({key})$", path).
TEST(Keys, APatternFindsTheEndOfAPath) {
  EXPECT_TRUE(path_matches("q_proj", "model.layers.0.self_attn.q_proj"));
  EXPECT_TRUE(path_matches("q_proj", "q_proj"));
  EXPECT_FALSE(path_matches("q_proj", "model.layers.0.self_attn.eq_proj"));
  EXPECT_FALSE(path_matches("mlp", "model.layers.0.mlp.up_proj"));
  EXPECT_TRUE(path_matches("layers.1.mlp.up_proj", "model.layers.1.mlp.up_proj"));
  EXPECT_FALSE(path_matches("layers.1.mlp.up_proj", "model.layers.11.mlp.up_proj"));
  EXPECT_TRUE(path_matches("mlp.up.proj", "model.layers.1.mlp.up_proj"));  // a dot is any character …
  EXPECT_FALSE(path_matches(R"(mlp\.up\.proj)", "model.layers.1.mlp.up_proj"));
  EXPECT_TRUE(path_matches(R"(mlp\.up_proj)", "model.layers.1.mlp.up_proj"));
  EXPECT_FALSE(path_matches("^layers.1.mlp.up_proj", "model.layers.1.mlp.up_proj"));
  EXPECT_TRUE(path_matches("^model.layers.1.mlp.up_proj", "model.layers.1.mlp.up_proj"));
  EXPECT_FALSE(path_matches("model.layers.1.mlp.up_proj.longer", "up_proj"));
}

TEST(Keys, OneTypeOfTwoBytesIsChosen) {
  Recipe recipe;
  apply(recipe, "torch_dtype", "float16");
  EXPECT_TRUE(recipe.fp16 && !recipe.bf16);
  apply(recipe, "initial_scale_power", "10");
  apply(recipe, "loss_scale_window", "100");
  EXPECT_NO_THROW(validate(recipe));
  const auto problem = [](const Recipe& of) {
    try {
      validate(of);
    } catch (const Error& error) {
      return error.problem();
    }
    return std::string("accepted");
  };
  Recipe both = recipe;
  both.bf16 = true;
  key_says(problem(both), "bf16 and fp16 are both true");
  Recipe neither = recipe;
  neither.fp16 = false;
  key_says(problem(neither), "initial_scale_power has a meaning only for fp16: true");
  neither.initial_scale_power = 16;
  key_says(problem(neither), "loss_scale_window has a meaning only for fp16: true");
  key_says(key_refusal("initial_scale_power", "25"), "from 0 to 24");
  key_says(key_refusal("loss_scale_window", "0"), "loss_scale_window must be a whole number from 1");
}

TEST(Keys, HarmlessKeysArePassedOver) {
  Recipe recipe;
  EXPECT_EQ(apply(recipe, "report_to", "wandb"), Applied::passed_over);
  EXPECT_EQ(apply(recipe, "dataloader-num-workers", "4"), Applied::passed_over);
  EXPECT_EQ(apply(recipe, "bnb_4bit_quant_storage", "uint8"), Applied::passed_over);
}

TEST(Keys, WordsOfOtherTrainersAreTranslated) {
  Recipe recipe;
  apply(recipe, "use_peft", "false");
  EXPECT_EQ(recipe.method, Method::full);
  apply(recipe, "finetuning_type", "lora");
  EXPECT_EQ(recipe.method, Method::lora);
  apply(recipe, "lora_target", "all");
  EXPECT_EQ(recipe.lora.target_modules, (std::vector<std::string>{"all-linear"}));
  apply(recipe, "torch_dtype", "bfloat16");
  EXPECT_TRUE(recipe.bf16);
  apply(recipe, "optim", "adamw_torch_fused");
  EXPECT_EQ(recipe.optim, Optimizer::adamw);
  apply(recipe, "optim", "adamw_bnb_8bit");
  EXPECT_EQ(recipe.optim, Optimizer::adamw_8bit);
  apply(recipe, "optim_args", "momentum=0.9");
  EXPECT_EQ(recipe.momentum, 0.9);
  apply(recipe, "optim_args", "none");
  EXPECT_EQ(recipe.momentum, 0.0);
  apply(recipe, "warmup_steps", "0.1");
  EXPECT_EQ(recipe.warmup_ratio, 0.1);
  apply(recipe, "train_on_inputs", "true");
  EXPECT_FALSE(recipe.completion_only_loss);
}

TEST(Keys, PagedOptimizersAreOptimizersWhoseStatesLieElsewhere) {
  const auto both = [](const char* word) {
    Recipe recipe;
    apply(recipe, "optim", word);
    return std::pair(recipe.optim, recipe.pages_states);
  };
  EXPECT_EQ(both("paged_adamw"), std::pair(Optimizer::adamw, true));
  EXPECT_EQ(both("paged_adamw_32bit"), std::pair(Optimizer::adamw, true));
  EXPECT_EQ(both("paged_adamw_8bit"), std::pair(Optimizer::adamw_8bit, true));
  EXPECT_EQ(both("paged_lion_32bit"), std::pair(Optimizer::lion, true));
  EXPECT_EQ(both("paged_lion_8bit"), std::pair(Optimizer::lion_8bit, true));
  EXPECT_EQ(both("adamw_8bit"), std::pair(Optimizer::adamw_8bit, false));
  const Key& optim = *find_key("optim");
  for (const char* word : {"paged_adamw_32bit", "paged_adamw_8bit", "paged_lion_32bit", "paged_lion_8bit", "lion_8bit"}) {
    Recipe recipe;
    recipe.pages_states = true;  // whatever was set before
    apply(recipe, "optim", word);
    EXPECT_EQ(optim.get(recipe), word);
  }
  key_says(key_refusal("optim", "paged_sgd"), "is not known");
}

TEST(Validate, TheOptimizerInBackwardNeedsOneMicroBatchAndNoClipping) {
  const auto refusal_of = [](const Recipe& recipe) -> std::string {
    try {
      validate(recipe);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  Recipe recipe;
  apply(recipe, "optimizer_in_backward", "true");
  key_says(refusal_of(recipe), "set max_grad_norm: 0");
  recipe.max_grad_norm = 0;
  EXPECT_EQ(refusal_of(recipe), "accepted");
  recipe.accumulation = 2;
  key_says(refusal_of(recipe), "set gradient_accumulation_steps: 1");
}

TEST(Validate, TheDefaultRecipeIsSound) { EXPECT_NO_THROW(validate(Recipe{})); }

TEST(Validate, KeysThatContradictEachOtherAreRefused) {
  const auto refused = [](auto change) {
    Recipe recipe;
    change(recipe);
    try {
      validate(recipe);
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  EXPECT_TRUE(refused([](Recipe& r) { r.batch = 0; }));
  EXPECT_TRUE(refused([](Recipe& r) { r.seq_len = 1; }));
  EXPECT_TRUE(refused([](Recipe& r) { r.accumulation = 0; }));
  EXPECT_TRUE(refused([](Recipe& r) { r.lora.r = 0; }));
  EXPECT_TRUE(refused([](Recipe& r) { r.adam_beta1 = 1.0; }));
  EXPECT_TRUE(refused([](Recipe& r) { r.warmup_steps = 5, r.warmup_ratio = 0.1; }));
  EXPECT_TRUE(refused([](Recipe& r) { r.warmup_steps = 5, r.lr_scheduler_type = Schedule::constant; }));
  EXPECT_FALSE(refused([](Recipe& r) { r.warmup_steps = 5, r.lr_scheduler_type = Schedule::constant_with_warmup; }));
  EXPECT_TRUE(refused([](Recipe& r) { r.lr_scheduler_kwargs = {{"power", 2.0}}; }));
  EXPECT_TRUE(refused([](Recipe& r) { r.lr_scheduler_type = Schedule::cosine_with_min_lr; }));
  EXPECT_FALSE(refused([](Recipe& r) {
    r.lr_scheduler_type = Schedule::cosine_with_min_lr;
    r.lr_scheduler_kwargs = {{"min_lr", 1e-5}};
  }));
  EXPECT_TRUE(refused([](Recipe& r) { r.checkpoint_layers = {1}; }));
  EXPECT_TRUE(refused([](Recipe& r) { r.checkpoint_inputs = 8; }));
  EXPECT_FALSE(refused([](Recipe& r) { r.checkpoint_inputs = 8, r.gradient_checkpointing = true; }));
  EXPECT_TRUE(refused([](Recipe& r) { r.checkpoint_inputs = 8, r.gradient_checkpointing = r.checkpoint_to_budget = true; }));
  EXPECT_TRUE(refused([](Recipe& r) { r.checkpoint_inputs = 8, r.gradient_checkpointing = r.offload_activations = true; }));
  EXPECT_TRUE(refused([](Recipe& r) { r.tiled_mlp_num_shards = 4; }));
  EXPECT_TRUE(refused([](Recipe& r) { r.master_weights = true; }));
  EXPECT_TRUE(refused([](Recipe& r) { r.method = Method::full, r.lora.modules_to_save = {"lm_head"}; }));
  EXPECT_TRUE(refused([](Recipe& r) { r.lora.target_modules = {"all-linear", "q_proj"}; }));
  EXPECT_TRUE(refused([](Recipe& r) { r.lora.target_modules = {"lm_head"}, r.lora.modules_to_save = {"lm_head"}; }));
  EXPECT_FALSE(refused([](Recipe& r) { r.method = Method::full, r.bf16 = true, r.master_weights = true; }));
}

TEST(Precision, Bf16KeepsGradientsAndStateInFp32) {
  Recipe recipe;
  recipe.bf16 = true;
  for (const Method method : {Method::lora, Method::full}) {
    recipe.method = method;
    const Precision precision = precision_of(recipe);
    EXPECT_EQ(precision.weights, DType::bf16);
    EXPECT_EQ(precision.activations, DType::bf16);
    EXPECT_EQ(precision.gradients, DType::f32);
    EXPECT_EQ(precision.optimizer, DType::f32);
    EXPECT_EQ(precision.master, method == Method::full ? DType::f32 : DType::bf16);
  }
  recipe.master_weights = false;
  EXPECT_EQ(precision_of(recipe).master, DType::bf16);
  recipe.bf16 = false;
  EXPECT_EQ(precision_of(recipe).weights, DType::f32);
  EXPECT_EQ(precision_of(recipe).master, DType::f32);
}

}  // namespace
TEST(Keys, QuantizationIsAskedForInEveryTrainersWords) {
  const auto asked = [](const char* key, const char* value) {
    Recipe recipe;
    apply(recipe, key, value);
    return recipe.quantize;
  };
  for (const auto& [key, value] : {std::pair{"load_in_4bit", "true"},
                                   {"quantization_bit", "4"},
                                   {"quant_bits", "4"},
                                   {"method", "qlora"},
                                   {"adapter", "qlora"}})
    EXPECT_TRUE(asked(key, value).in_4bit && !asked(key, value).in_8bit) << key;
  EXPECT_TRUE(asked("quantization_bit", "8").in_8bit);
  EXPECT_EQ(asked("bnb_4bit_quant_type", "fp4").type_4bit, DType::fp4);
  EXPECT_FALSE(asked("use_bnb_nested_quant", "false").double_quant);
  EXPECT_EQ(asked("bnb_4bit_compute_dtype", "torch.bfloat16").compute, DType::bf16);
  EXPECT_EQ(asked("bnb_4bit_compute_dtype", "auto").compute, std::nullopt);
}

TEST(Keys, QuantizationThatMakesNoSenseIsRefusedWithTheReason) {
  const auto refused = [](const std::vector<std::pair<const char*, const char*>>& keys, const char* reason) {
    Recipe recipe;
    for (const auto& [key, value] : keys) apply(recipe, key, value);
    try {
      validate(recipe);
      ADD_FAILURE() << reason << ": not refused";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
  };
  refused({{"load_in_4bit", "true"}, {"load_in_8bit", "true"}}, "both true");
  refused({{"load_in_4bit", "true"}, {"method", "full"}}, "quantized weights cannot be trained");
  refused({{"load_in_8bit", "true"}, {"method", "full"}}, "quantized weights cannot be trained");
  refused({{"prepare_model_for_kbit_training", "true"}}, "only with quantized weights");
}

}  // namespace snug
