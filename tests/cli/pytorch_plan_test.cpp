// PyTorch's answer of `snug plan`: against published peaks, and whose verdict the command gives.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/support_process.h"
#include "cli/support_workspace.h"

namespace snug::cli_tests {

namespace {

// Mistral-7B with the one token that the published runs added.
std::string mistral_with_padding_token(const Workspace& workspace) {
  const auto folder = workspace / "mistral";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << R"({"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32001, "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0, "sliding_window": 4096, "max_position_embeddings": 32768, "tie_word_embeddings": false,
    "torch_dtype": "bfloat16"})";
  return folder.string();
}

Json pytorch_of(const std::vector<std::string>& words) { return Json::parse(run_program(words).output).at("pytorch"); }

// foundation-model-stack/fms-acceleration scripts/benchmarks/refs/a100_80gb.csv: torch.cuda.max_memory_allocated() of QLoRA
// on an A100-80GB, framework_config baseline-peft-bnb.
TEST(PyTorchPlan, is_the_published_peak_to_the_byte) {
  Workspace workspace;
  const std::string model = mistral_with_padding_token(workspace);
  for (const auto& [batch, peak] : {std::pair("4", int64_t{20669338112}), {"8", int64_t{37002646016}}}) {
    const Json answer = pytorch_of({"plan",
                                    model,
                                    "--gpu",
                                    "A100",
                                    "--method",
                                    "qlora",
                                    "--bf16",
                                    "--batch",
                                    batch,
                                    "--seq",
                                    "4096",
                                    "--lora-r",
                                    "16",
                                    "--lora-dropout",
                                    "0.1",
                                    "--lora-target-modules",
                                    "q_proj,k_proj,v_proj,o_proj",
                                    "--gradient-checkpointing",
                                    "--attn-implementation",
                                    "flash_attention_2",
                                    "--prepare-model-for-kbit-training",
                                    "trl",
                                    "--stack",
                                    "torch=2.4.1,transformers=4.48.1,peft=0.13.2,bitsandbytes=0.43.3",
                                    "--json"});
    EXPECT_EQ(answer.at("allocated_bytes").get<int64_t>(), peak) << "batch " << batch;
    EXPECT_TRUE(answer.at("fits").get<bool>());
  }
}

// Scripts read the same of a model whose step only PyTorch's side knows: the recipe, and what became of the file's keys.
TEST(PyTorchPlan, of_a_model_that_only_pytorch_knows_has_its_recipe_and_the_files_keys) {
  Workspace workspace;
  const auto file = workspace / "qwen35.yaml";
  std::ofstream(file) << "model_name_or_path: Qwen/Qwen3.5-4B\nstage: sft\nfinetuning_type: lora\nlora_rank: 24\n"
                         "cutoff_len: 1024\ntemplate: qwen\nbf16: true\n";
  const Json answer = Json::parse(run_program({"plan", file.string(), "--gpu", "RTX-4090", "--json"}).output);
  EXPECT_EQ(answer.at("recipe").at("lora_r"), "24");
  EXPECT_EQ(answer.at("recipe").at("max_length"), "1024");
  EXPECT_EQ(answer.at("file").at("trainer"), "LLaMA-Factory");
  EXPECT_EQ(answer.at("file").at("keys").size(), 7U);
  EXPECT_GT(answer.at("pytorch").at("allocated_bytes").get<int64_t>(), answer.at("at_least_bytes").get<int64_t>());
}

// Trainer's own loop: 8 rows at a time unless told, of which it keeps the loss; with compute_metrics the logits too.
TEST(PyTorchPlan, evaluates_where_the_recipe_does) {
  const auto plan = [](std::vector<std::string> more) {
    std::vector<std::string> words = {"plan", "Qwen/Qwen2.5-0.5B",        "--gpu", "A100", "--bf16", "--seq",
                                      "512",  "--gradient-checkpointing", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return pytorch_of(words);
  };
  const auto evaluated = [](const Json& answer) {
    return answer.at("phases").at("evaluate").at("allocated_bytes").get<int64_t>();
  };
  EXPECT_FALSE(plan({}).at("phases").contains("evaluate"));
  EXPECT_TRUE(plan({}).at("setup").at("evaluation").is_null());
  const Json by_size = plan({"--val-size", "100"});
  EXPECT_EQ(by_size.at("setup").at("evaluation").at("batch"), 8);
  EXPECT_EQ(by_size.at("setup").at("evaluation").at("rows"), 100);
  EXPECT_EQ(by_size.at("phase"), "evaluate");
  EXPECT_EQ(evaluated(by_size), by_size.at("allocated_bytes").get<int64_t>());
  EXPECT_LT(evaluated(plan({"--eval-rows", "100", "--eval-batch", "1"})), evaluated(by_size));
  const Json kept = plan({"--eval-rows", "100", "--compute-metrics"});
  EXPECT_GT(evaluated(kept), evaluated(by_size) + int64_t{100} * 512 * 151936 * 4);
  EXPECT_LT(evaluated(plan({"--eval-rows", "100", "--compute-metrics", "--eval-accumulation-steps", "1"})), evaluated(kept));
  EXPECT_EQ(run_program({"plan", "Qwen/Qwen2.5-0.5B", "--gpu", "A100", "--compute-metrics"}).exit_code, 2);
}

TEST(PyTorchPlan, evaluates_as_another_trainers_file_says) {
  Workspace workspace;
  const auto evaluation = [&](const std::string& more) {
    std::ofstream(workspace / "trainer.yaml") << "model_name_or_path: Qwen/Qwen2.5-0.5B\nper_device_train_batch_size: 1\n"
                                                 "bf16: true\ngradient_checkpointing: true\nmax_length: 512\n"
                                                 "dataset_name: some/rows\nlearning_rate: 1e-4\n"
                                              << more;
    return pytorch_of({"plan", (workspace / "trainer.yaml").string(), "--gpu", "A100", "--json"})
        .at("setup")
        .at("evaluation");
  };
  EXPECT_TRUE(evaluation("").is_null());
  EXPECT_TRUE(evaluation("eval_strategy: 'no'\n").is_null());
  EXPECT_EQ(evaluation("eval_strategy: steps\n").at("batch"), 8);
  EXPECT_EQ(evaluation("eval_strategy: epoch\nper_device_eval_batch_size: 2\n").at("batch"), 2);
  std::ofstream(workspace / "axolotl.yaml") << "base_model: Qwen/Qwen2.5-0.5B\nadapter: lora\nlora_r: 8\nlora_alpha: 16\n"
                                               "lora_target_linear: true\nmicro_batch_size: 3\nsequence_len: 512\n"
                                               "val_set_size: 0.05\nbf16: true\ndatasets:\n  - path: some/rows\n";
  const Json of_axolotl = pytorch_of({"plan", (workspace / "axolotl.yaml").string(), "--gpu", "A100", "--json"});
  EXPECT_EQ(of_axolotl.at("setup").at("evaluation").at("batch"), 3);
}

TEST(PyTorchPlan, decides_for_a_card_and_not_for_this_machine) {
  const std::vector<std::string> tight = {
      "plan", "meta-llama/Llama-3.1-8B", "--gpu", "RTX-4090", "--bf16", "--batch", "2", "--seq", "1024"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), tight.begin(), tight.end());
    return run_program(more);
  };
  EXPECT_EQ(with({}).exit_code, 3);
  EXPECT_TRUE(with({}).output.starts_with("PyTorch: does not fit: "));
  EXPECT_EQ(with({"--runtime", "snug"}).exit_code, 0);
  EXPECT_TRUE(with({"--runtime", "snug"}).output.starts_with("fits: "));
  const Json json = Json::parse(with({"--json"}).output);
  EXPECT_FALSE(json.at("fits").get<bool>());
  EXPECT_FALSE(json.at("pytorch").at("fits").get<bool>());
  int64_t sum = 0;
  for (const auto& [role, bytes] : json.at("pytorch").at("breakdown").items()) sum += bytes.get<int64_t>();
  EXPECT_EQ(sum, json.at("pytorch").at("allocated_bytes").get<int64_t>());
  const auto here = run_program({"plan", "HuggingFaceTB/SmolLM2-135M", "--json"});
  EXPECT_FALSE(Json::parse(here.output).contains("pytorch"));
}

TEST(PyTorchPlan, what_is_not_covered_is_named_and_snugs_verdict_stands) {
  const auto run = run_program({"plan", "openai/gpt-oss-20b", "--gpu", "H200", "--bf16", "--gradient-checkpointing"});
  EXPECT_TRUE(run.output.starts_with("PyTorch: not known: ")) << run.output;
  EXPECT_NE(run.output.find("mixtures of experts"), std::string::npos);
  const auto liger = run_program({"plan", "microsoft/phi-4", "--gpu", "H100", "--use-liger-kernel"});
  EXPECT_NE(liger.output.find("Liger"), std::string::npos) << liger.output;
  for (const auto& [card, reason] : {std::pair("MI300X", "is no CUDA card"), {"T4", "before Ampere"}}) {
    const auto other = run_program({"plan", "meta-llama/Llama-3.2-1B", "--gpu", card});
    EXPECT_TRUE(other.output.starts_with("PyTorch: not known: ")) << other.output;
    EXPECT_NE(other.output.find(reason), std::string::npos) << other.output;
  }
  const auto saved = run_program({"plan", "meta-llama/Llama-3.2-1B", "--gpu", "H100", "--modules-to-save", "lm_head"});
  EXPECT_TRUE(saved.output.starts_with("PyTorch: not known: ")) << saved.output << saved.error;
}

// LitGPT has a model and a loop of its own: weights in bf16, a head of its own, no autocast; adapters on the head are
// covered.
TEST(PyTorchPlan, another_program_is_asked_for_by_name) {
  const std::vector<std::string> words{
      "plan", "google/gemma-2b",       "--gpu",          "A10G",   "--bf16",   "--batch", "2", "--seq", "512", "--method",
      "lora", "--lora-target-modules", "q_proj,lm_head", "--json", "--trainer"};
  const auto by = [&](const std::string& trainer) {
    std::vector<std::string> all = words;
    all.push_back(trainer);
    return pytorch_of(all);
  };
  EXPECT_GT(by("litgpt").at("allocated_bytes").get<int64_t>(), int64_t{8} << 30U);
  EXPECT_TRUE(by("transformers").contains("not_covered"));
  EXPECT_EQ(run_program({"plan", "google/gemma-2b", "--gpu", "A10G", "--trainer", "other"}).exit_code, 2);
}

Json setup_of_file(const Workspace& workspace, const std::string& name, const std::string& text,
                   const std::string& stack = "") {
  const auto file = workspace / name;
  std::ofstream(file) << text;
  std::vector<std::string> words{"plan", file.string(), "--gpu", "A100", "--json"};
  if (!stack.empty()) words.insert(words.end(), {"--stack", stack});
  return pytorch_of(words);
}

// transformers' TrainingArguments: bf16 False unless it is said; torch_dtype is from_pretrained's. SFTConfig: bf16 True.
TEST(PyTorchPlan, the_dtype_of_weights_is_no_autocast) {
  Workspace workspace;
  const std::string model = mistral_with_padding_token(workspace);
  const std::string begin = R"({"model_name_or_path": ")" + model +
                            R"(", "per_device_train_batch_size": 1, "max_length": 512, "torch_dtype": "bfloat16")";
  const auto autocast = [&](const std::string& more) {
    const Json setup = setup_of_file(workspace, "recipe.json", begin + more + "}").at("setup");
    return setup.at("autocast").is_string() ? setup.at("autocast").get<std::string>() : "none";
  };
  EXPECT_EQ(autocast(""), "none");
  EXPECT_EQ(autocast(R"(, "bf16": true)"), "bfloat16");
  EXPECT_EQ(autocast(R"(, "dataset_name": "rows")"), "bfloat16");
  EXPECT_EQ(autocast(R"(, "dataset_name": "rows", "bf16": false)"), "none");
}

TEST(PyTorchPlan, attention_that_the_file_asks_for_is_followed) {
  Workspace workspace;
  const std::string text =
      "model_name_or_path: " + mistral_with_padding_token(workspace) +
      "\ndataset_name: rows\nper_device_train_batch_size: 1\nuse_peft: true\nlora_r: 8\nattn_implementation: ";
  const Json eager = setup_of_file(workspace, "recipe.yaml", text + "eager\n");
  const Json fused = setup_of_file(workspace, "recipe.yaml", text + "sdpa\n");
  EXPECT_EQ(eager.at("setup").at("attention"), "eager");
  EXPECT_GT(eager.at("allocated_bytes").get<int64_t>(), fused.at("allocated_bytes").get<int64_t>());
}

// ms-swift calls no prepare_model_for_kbit_training: what is not quantized stays in bf16. 2 x 32,001 x 4,096 in fp32 are 500
// MiB more.
TEST(PyTorchPlan, swift_casts_nothing_of_a_quantized_model) {
  Workspace workspace;
  const std::string model = mistral_with_padding_token(workspace);
  const Json swift = setup_of_file(workspace, "train.sh",
                                   "swift sft --model " + model +
                                       " --tuner_type lora --quant_method bnb --quant_bits 4 --torch_dtype bfloat16"
                                       " --per_device_train_batch_size 1 --max_length 512\n");
  const Json peft =
      setup_of_file(workspace, "recipe.yaml",
                    "base_model: " + model +
                        "\nadapter: qlora\nload_in_4bit: true\nmicro_batch_size: 1\nsequence_len: 512\n"
                        "lora_r: 8\nlora_target_linear: true\nbf16: true\ndatasets:\n  - path: rows\n    type: alpaca\n");
  const auto weights = [](const Json& of) { return of.at("breakdown").at("weights").get<int64_t>(); };
  EXPECT_LT(weights(swift), weights(peft) - (int64_t{490} << 20));
}

// AutoModelForCausalLM loads Gemma 3 with its tower, whose q_proj and v_proj peft adapts too: 27 layers of two linears, 8 x
// (1,152 + 1,152) numbers in fp32 each. LLaMA-Factory leaves a tower alone (freeze_vision_tower).
TEST(PyTorchPlan, a_tower_that_rests_is_there_and_adapted_by_name) {
  Workspace workspace;
  const auto adapters = [](const Json& of) { return of.at("breakdown").at("adapters").get<int64_t>(); };
  const Json trl = setup_of_file(workspace, "recipe.yaml",
                                 "model_name_or_path: google/gemma-3-4b-it\ndataset_name: rows\nuse_peft: true\nlora_r: 8\n"
                                 "per_device_train_batch_size: 1\nlora_target_modules: [q_proj, v_proj]\n"
                                 "torch_dtype: bfloat16\n");
  const std::string factory =
      "model_name_or_path: google/gemma-3-4b-it\nstage: sft\ntemplate: gemma3\ndataset: rows\nfinetuning_type: lora\n"
      "lora_rank: 8\nlora_target: q_proj,v_proj\nper_device_train_batch_size: 1\nbf16: true\n";
  const Json rests = setup_of_file(workspace, "factory.yaml", factory);
  EXPECT_EQ(adapters(trl) - adapters(rests), int64_t{27} * 2 * 8 * (1152 + 1152) * 4);
  EXPECT_EQ(adapters(setup_of_file(workspace, "factory.yaml", factory + "freeze_vision_tower: false\n")), adapters(trl));
  const auto run = run_program({"plan", "google/gemma-3-4b-it", "--gpu", "A100", "--load-in-4bit", "true"});
  EXPECT_TRUE(run.output.starts_with("PyTorch: fits: ")) << run.output;
  const auto two = run_program({"plan", "google/gemma-3-4b-it", "--gpu", "A100", "--gpus", "2"});
  EXPECT_TRUE(two.output.starts_with("PyTorch: not known: ")) << two.output << two.error;
}

// TRL's default loss makes logits in tiles since 1.7: 4,096 rows of 32,001 words are 500 MiB in fp32, several times over.
TEST(PyTorchPlan, trls_default_loss_makes_no_whole_logits) {
  Workspace workspace;
  const std::string text = "model_name_or_path: " + mistral_with_padding_token(workspace) +
                           "\ndataset_name: rows\nper_device_train_batch_size: 4\nuse_peft: true\nlora_r: 8\n"
                           "torch_dtype: bfloat16\n";
  const auto bytes = [&](const std::string& more, const std::string& stack) {
    return setup_of_file(workspace, "recipe.yaml", text + more, stack).at("allocated_bytes").get<int64_t>();
  };
  EXPECT_LT(bytes("", "trl=1.7.0"), bytes("", "trl=1.6.0") - (int64_t{500} << 20));
  EXPECT_EQ(bytes("loss_type: nll\n", "trl=1.7.0"), bytes("", "trl=1.6.0"));
  EXPECT_EQ(bytes("loss_type: nll\n", "trl=1.16.0"), bytes("", "trl=1.7.0"));
}

// By FSDP a rank has a share of weights, gradients and states; by DDP all of them and gradients twice.
TEST(PyTorchPlan, several_gpus_share_a_run_or_repeat_it) {
  const auto planned = [](const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        "plan", "Qwen/Qwen2.5-1.5B", "--method", "full", "--gradient-checkpointing", "--gpu", "H100", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return pytorch_of(words);
  };
  const Json alone = planned({}), ddp = planned({"--gpus", "4"}), fsdp = planned({"--gpus", "4", "--fsdp"});
  EXPECT_EQ(ddp.at("setup").at("sharding"), "ddp");
  EXPECT_EQ(ddp.at("ranks").at(0).at("count"), 4);
  EXPECT_EQ(fsdp.at("setup").at("sharding"), "fsdp2");
  const auto steady = [](const Json& answer) { return answer.at("steady_bytes").get<double>(); };
  constexpr double kParameters = 1'543'714'304;
  EXPECT_NEAR(steady(ddp) - steady(alone), kParameters * 2, kParameters * 0.01);  // buckets, as wide as the weights
  EXPECT_NEAR(steady(fsdp), kParameters * 12 / 4, kParameters * 0.05);            // AdamW in fp32
}

TEST(PyTorchPlan, a_launcher_of_a_recipe_tells_how_many_share_it) {
  Workspace workspace;
  const std::string text =
      "base_model: " + mistral_with_padding_token(workspace) +
      "\ndatasets:\n  - path: rows\n    type: alpaca\nmicro_batch_size: 1\nsequence_len: 1024\nbf16: true\n";
  const auto asked = [&](const std::string& more, const std::vector<std::string>& flags) {
    std::ofstream(workspace / "axolotl.yaml") << text << more;
    std::vector<std::string> words{"plan", (workspace / "axolotl.yaml").string(), "--gpu", "H100", "--json"};
    words.insert(words.end(), flags.begin(), flags.end());
    return pytorch_of(words);
  };
  const std::string fsdp = "fsdp_version: 2\nfsdp_config:\n  fsdp_version: 2\n  reshard_after_forward: true\n";
  EXPECT_EQ(asked(fsdp, {"--gpus", "8"}).at("setup").at("sharding"), "fsdp2");
  // Where nobody says how many, a machine's eight, which is told.
  EXPECT_EQ(asked(fsdp, {}).at("ranks").at(0).at("count"), 8);
  EXPECT_EQ(asked("deepspeed: zero3.json\n", {}).at("allocated_bytes"),
            asked("deepspeed: zero3.json\n", {"--gpus", "8"}).at("allocated_bytes"));
  EXPECT_EQ(asked("fsdp_config:\n  fsdp_version: 1\n", {"--gpus", "8"}).at("setup").at("sharding"), "fsdp1");
  const auto refused = [&](const std::string& key) {
    const Json answer = asked("fsdp_config:\n  fsdp_version: 1\n  " + key + "\n", {"--gpus", "8"});
    return answer.at("not_covered").get<std::string>();
  };
  EXPECT_NE(refused("fsdp_sharding_strategy: HYBRID_SHARD").find("hybrid_shard"), std::string::npos);
  EXPECT_NE(refused("fsdp_backward_prefetch: BACKWARD_POST").find("backward_post"), std::string::npos);
  EXPECT_NE(refused("auto_wrap_policy: SIZE_BASED_WRAP").find("size_based_wrap"), std::string::npos);
  EXPECT_EQ(asked("deepspeed: zero3.json\n", {"--gpus", "8"}).at("setup").at("sharding"), "zero3");
  EXPECT_NE(asked("deepspeed: zero3.json\nadapter: qlora\nload_in_4bit: true\nlora_r: 8\nlora_target_linear: true\n",
                  {"--gpus", "8"})
                .at("not_covered")
                .get<std::string>()
                .find("under DeepSpeed"),
            std::string::npos);
  EXPECT_EQ(asked("deepspeed: deepspeed_configs/zero2.json\n", {"--gpus", "8"}).at("setup").at("sharding"), "zero2");
}

// No logits are whole, and what gates and norms kept is written over.
TEST(PyTorchPlan, ligers_kernels_are_followed_as_each_trainer_names_them) {
  Workspace workspace;
  const std::string text =
      "model_name_or_path: Qwen/Qwen2.5-0.5B\nstage: sft\nfinetuning_type: full\nbf16: true\n"
      "cutoff_len: 2048\nper_device_train_batch_size: 4\ndataset: rows\ntemplate: qwen\noutput_dir: out\n";
  const auto factory = [&](const std::string& more) {
    std::ofstream(workspace / "sft.yaml") << text << more;
    return pytorch_of({"plan", (workspace / "sft.yaml").string(), "--gpu", "A100", "--json"});
  };
  const auto bytes = [](const Json& answer) { return answer.at("allocated_bytes").get<double>(); };
  const double logits = 4.0 * 2048 * 151936 * 2;  // in 16 bits
  EXPECT_GT(bytes(factory("")) - bytes(factory("enable_liger_kernel: true\n")), 3 * logits);
  const auto axolotl = [&](const std::string& more) {
    std::ofstream(workspace / "axolotl.yaml")
        << "base_model: Qwen/Qwen2.5-0.5B\ndatasets:\n  - path: rows\n    type: alpaca\n"
           "micro_batch_size: 4\nsequence_len: 2048\nbf16: true\n"
        << more;
    return pytorch_of({"plan", (workspace / "axolotl.yaml").string(), "--gpu", "A100", "--json"});
  };
  EXPECT_GT(bytes(axolotl("")) - bytes(axolotl("liger_fused_linear_cross_entropy: true\n")), 3 * logits);
  EXPECT_LT(bytes(axolotl("liger_rms_norm: true\n")), bytes(axolotl("")));
  EXPECT_NE(axolotl("liger_cross_entropy: true\n").at("not_covered").get<std::string>().find("liger_cross_entropy"),
            std::string::npos);
}

// FSDP 1 keeps what it gathered until backward if asked to, and gathers the unit before the one that backward is at.
TEST(PyTorchPlan, fsdp_ones_keys_change_its_peak) {
  Workspace workspace;
  const std::string text =
      "base_model: " + mistral_with_padding_token(workspace) +
      "\ndatasets:\n  - path: rows\n    type: alpaca\nmicro_batch_size: 1\nsequence_len: 512\nbf16: true\n"
      "gradient_checkpointing: true\noptimizer: adamw_torch\nfsdp_config:\n  fsdp_version: 1\n";
  const auto planned = [&](const std::string& key) {
    std::ofstream(workspace / "axolotl.yaml") << text << (key.empty() ? "" : "  " + key + "\n");
    return pytorch_of({"plan", (workspace / "axolotl.yaml").string(), "--gpu", "H100", "--gpus", "8", "--json"});
  };
  const auto bytes = [](const Json& answer, const char* which) { return answer.at(which).get<double>(); };
  const Json plain = planned(""), gathered = planned("fsdp_sharding_strategy: SHARD_GRAD_OP");
  const double kParameters = 7.24e9;
  EXPECT_GT(bytes(gathered, "allocated_bytes") - bytes(plain, "allocated_bytes"), 0.5 * kParameters);
  EXPECT_GE(bytes(planned("fsdp_backward_prefetch: BACKWARD_PRE"), "allocated_bytes"), bytes(plain, "allocated_bytes"));
  // gradients of flat parameters go as soon as the optimizer forgets them
  const Json flat = planned("fsdp_use_orig_params: false");
  EXPECT_NEAR(bytes(plain, "steady_bytes") - bytes(flat, "steady_bytes"), kParameters * 4 / 8, kParameters * 0.01);
}

// The bucket is what its configuration says, twice where sums overlap with backward.
TEST(PyTorchPlan, deepspeeds_configuration_sets_its_buckets) {
  Workspace workspace;
  const auto planned = [&](const std::string& zero) {
    std::ofstream(workspace / "zero.json") << R"({"zero_optimization": )" << zero << "}";
    return pytorch_of({"plan", "Qwen/Qwen2.5-1.5B", "--method", "full", "--gradient-checkpointing", "--gpu", "H100",
                       "--bf16", "--gpus", "4", "--deepspeed", (workspace / "zero.json").string(), "--json"});
  };
  const auto peak = [&](const std::string& zero) { return planned(zero).at("allocated_bytes").get<double>(); };
  const double one = peak(R"({"stage": 2, "reduce_bucket_size": 1e9})");
  EXPECT_NEAR(peak(R"({"stage": 2, "reduce_bucket_size": 1e9, "overlap_comm": true})") - one, 2e9, 1e7);
  EXPECT_EQ(planned(R"({"stage": 1, "reduce_bucket_size": "auto"})").at("setup").at("sharding"), "zero1");
  const double all_live = peak(R"({"stage": 3, "reduce_bucket_size": "auto"})");
  EXPECT_LT(
      peak(R"({"stage": 3, "reduce_bucket_size": "auto", "stage3_max_live_parameters": 0, "stage3_max_reuse_distance": 0})"),
      all_live);
  const Json away = planned(R"({"stage": 2, "offload_optimizer": {"device": "cpu"}})");
  EXPECT_NE(away.at("not_covered").get<std::string>().find("offload"), std::string::npos);
  for (const char* broken : {"[]", R"({"stage": 7})", R"({"stage": 2, "reduce_bucket_size": "large"})"})
    EXPECT_TRUE(planned(broken).contains("not_covered")) << broken;
}

// sft_trainer.py since TRL 0.26: a quantized model is not prepared as peft has it, and its adapters are cast to bf16.
// Allocated by SFTTrainer on the null device of an A100: torch 2.15.0, transformers 5.24.0, peft 0.21.2, bitsandbytes
// 0.50.2, trl 1.16.0.
TEST(PyTorchPlan, trls_quantized_models_have_narrow_adapters) {
  const Workspace work;
  const auto planned = [&](const std::string& more, const std::string& trl) {
    const std::string file = (work / "recipe.yaml").string();
    std::ofstream(file)
        << "model_name_or_path: meta-llama/Llama-3.2-1B\ndataset_name: tatsu-lab/alpaca\nuse_peft: true\nlora_r: 16\n"
           "lora_target_modules: all-linear\nlora_dropout: 0.0\nmax_length: 1024\nper_device_train_batch_size: 4\n"
           "bf16: true\ntorch_dtype: bfloat16\noptim: adamw_torch_fused\n"
        << more;
    return pytorch_of({"plan", file, "--gpu", "A100", "--json", "--stack",
                       "torch=2.15.0,transformers=5.24.0,peft=0.21.2,bitsandbytes=0.50.2,trl=" + trl});
  };
  const struct {
    const char* more;
    double allocated;
  } kMeasured[] = {{"gradient_checkpointing: false\n", 10640482816},
                   {"gradient_checkpointing: false\nload_in_4bit: true\n", 8078017024},
                   {"gradient_checkpointing: true\nload_in_4bit: true\n", 1973151232}};
  for (const auto& [more, allocated] : kMeasured)
    EXPECT_NEAR(planned(more, "1.16.0").at("allocated_bytes").get<double>() / allocated, 1, 0.006) << more;
  EXPECT_EQ(planned("load_in_4bit: true\n", "1.16.0").at("setup").at("preparation"), "none");
  EXPECT_EQ(planned("load_in_4bit: true\n", "0.25.1").at("setup").at("preparation"), "peft");
}

// training_args.py, default_optim: since transformers 4.54 and torch 2.8 AdamW has one kernel unless the other is asked for.
TEST(PyTorchPlan, adamw_is_trainers_own_unless_named) {
  const auto optimizer = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"plan", "Qwen/Qwen2.5-1.5B", "--method", "full", "--gpu", "H100", "--json"});
    return pytorch_of(words).at("setup").at("optimizer");
  };
  EXPECT_EQ(optimizer({}), "adamw_torch_fused");
  EXPECT_EQ(optimizer({"--stack", "torch=2.8.0,transformers=4.53.0"}), "adamw_torch");
  EXPECT_EQ(optimizer({"--stack", "torch=2.7.1,transformers=4.54.0"}), "adamw_torch");
  EXPECT_EQ(optimizer({"--stack", "torch=2.8.0,transformers=4.54.0"}), "adamw_torch_fused");
  EXPECT_EQ(optimizer({"--optim", "adamw_torch"}), "adamw_torch");
  EXPECT_EQ(optimizer({"--optim", "adamw_torch_fused", "--stack", "torch=2.4.1,transformers=4.48.1"}), "adamw_torch_fused");
  EXPECT_EQ(optimizer({"--optim", "adamw_8bit"}), "adamw_bnb_8bit");
}

// Whose kernels take the place of PyTorch's, on one device too.
TEST(PyTorchPlan, deepspeeds_configuration_names_its_optimizer) {
  Workspace workspace;
  const auto planned = [&](const std::string& optimizer) {
    std::ofstream(workspace / "zero.json") << R"({"zero_optimization": {"stage": 2}, "optimizer": )" << optimizer << "}";
    return pytorch_of({"plan", "Qwen/Qwen2.5-1.5B", "--method", "full", "--gpu", "H100", "--bf16", "--gpus", "1",
                       "--deepspeed", (workspace / "zero.json").string(), "--json"})
        .at("setup");
  };
  EXPECT_EQ(planned(R"({"type": "AdamW"})").at("optimizer"), "adamw_torch_fused");
  EXPECT_EQ(planned(R"({"type": "AdamW", "params": {"torch_adam": true}})").at("optimizer"), "adamw_torch");
  EXPECT_EQ(planned("{}").at("sharding"), "zero2");
}

TEST(PyTorchPlan, words_without_meaning_are_usage_errors) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--runtime", "jax"},
                                                {"--stack", "numpy=1.0"},
                                                {"--attn-implementation", "xformers"},
                                                {"--gpus", "some"},
                                                {"--gpus", "9223372036854775807"},
                                                {"--gpus", "4", "--fsdp", "--ddp"},
                                                {"--gradient-checkpointing-kwargs", "reentrant"}}) {
    std::vector<std::string> all = {
        "plan", "meta-llama/Llama-3.2-1B", "--method", "qlora", "--gradient-checkpointing", "--gpu", "H100"};
    all.insert(all.end(), words.begin(), words.end());
    const auto run = run_program(all);
    EXPECT_EQ(run.exit_code, 2) << words[0];
    EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 1) << run.error;
  }
}

}  // namespace

}  // namespace snug::cli_tests
