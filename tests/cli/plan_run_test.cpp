// The plan is the run: over 48 recipes, and for every family of models, the operating system's own count (VmHWM) stays
// within the planned peak and close below it, and the run finishes with its data segment limited to the plan and 16 MiB.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

#include "cli/support_workspace.h"
#include "families.h"

namespace snug::cli_tests {

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

struct Figures {
  int64_t planned = 0, measured = 0;
};

std::vector<std::string> random_recipe(std::mt19937& random, int64_t longest) {
  const auto pick = [&](std::vector<std::string> values) { return values[random() % values.size()]; };
  std::vector<std::string> words = {"--max-steps",
                                    "2",
                                    "--gradient-accumulation-steps",
                                    pick({"1", "2", "3"}),
                                    "--per-device-train-batch-size",
                                    pick({"1", "2", "4"}),
                                    "--max-length",
                                    longest < 256 ? pick({"33", "64"}) : pick({"48", "100", "128", "256"}),
                                    "--threads",
                                    pick({"1", "2", "2"}),
                                    "--packing",
                                    pick({"true", "false"})};
  const auto add = [&](std::vector<std::string> more) { words.insert(words.end(), more.begin(), more.end()); };
  const bool half = random() % 2 == 0, checkpointing = random() % 2 == 0;
  if (half) add({pick({"--bf16", "--fp16"})});
  if (checkpointing) add({"--gradient-checkpointing"});
  if (checkpointing && random() % 2 == 0) add({"--checkpoint-layers", "1"});
  if (random() % 2 == 0) {
    add({"--method", "full"});
    if (half) add({"--master-weights", pick({"true", "false"})});
  } else if (random() % 4 == 0) {
    add({"--method", "lora", "--lora-target-modules", "q_proj", "--modules-to-save", "lm_head"});
  } else {
    const std::string targets = pick({"all-linear", "q_proj,v_proj", "q_proj,lm_head"});
    add({"--method", "lora", "--lora-r", pick({"1", "8", "64"}), "--lora-target-modules", targets});
    if (targets != "q_proj,lm_head" && random() % 2 == 0) add({"--use-dora"});
    if (random() % 2 == 0) add({"--lora-dropout", "0.1"});
  }
  return words;
}

// Any technique beside any other: what is nonsense is refused with its reason, the rest must run as planned.
std::vector<std::string> random_combination(std::mt19937& random) {
  const auto pick = [&](std::vector<std::string> values) { return values[random() % values.size()]; };
  std::vector<std::string> words = {"--max-steps", "2",
                                    "--accum",     pick({"1", "2"}),
                                    "--batch",     pick({"1", "2"}),
                                    "--seq",       pick({"48", "100", "128"}),
                                    "--threads",   "2",
                                    "--method",    pick({"full", "lora", "lora", "qlora", "qlora"})};
  const auto add = [&](std::vector<std::string> more) { words.insert(words.end(), more.begin(), more.end()); };
  const auto sometimes = [&](unsigned of, std::vector<std::string> more) {
    if (random() % of == 0) add(std::move(more));
  };
  add({"--optim", pick({"adamw_torch", "adamw_bf16_states", "adamw_8bit", "lion_32bit", "lion_8bit", "adafactor", "sgd",
                        "paged_adamw_32bit", "paged_adamw_8bit", "paged_lion_32bit", "paged_lion_8bit"})});
  sometimes(3, {"--bf16"});
  sometimes(4, {"--fp16"});
  sometimes(2, {"--gradient-checkpointing"});
  sometimes(6, {"--load-in-8bit"});
  sometimes(4, {"--bnb-4bit-quant-type", "fp4"});
  sometimes(3, {"--bnb-4bit-use-double-quant", "false"});
  sometimes(4, {"--bnb-4bit-compute-dtype", pick({"float32", "bfloat16"})});
  sometimes(6, {"--prepare-model-for-kbit-training"});
  sometimes(5, {"--optimizer-in-bwd"});
  sometimes(3, {"--max-grad-norm", "0"});
  sometimes(8, {"--master-weights", pick({"true", "false"})});
  if (random() % 2 == 0) add({"--lora-target-modules", pick({"all-linear", "q_proj", "down_proj,lm_head"})});
  sometimes(6, {"--use-dora"});
  sometimes(6, {"--use-rslora"});
  sometimes(5, {"--lora-dropout", "0.1"});
  sometimes(8, {"--modules-to-save", "embed_tokens"});
  sometimes(8, {"--packing", "false"});
  sometimes(3, {"--offload-activations", "disk"});
  sometimes(4, {"--offload-weights", "disk"});
  sometimes(8, {"--offload-gradients", "disk"});
  sometimes(4, {"--tiled-mlp", "--tiled-mlp-num-shards", pick({"2", "5"})});
  return words;
}

Figures plan_and_run(const Workspace& workspace, std::vector<std::string> recipe, const std::string& name, bool evaluate) {
  if (evaluate) {  // a few rows: the first batch takes as much as the last
    put(workspace / "eval.jsonl", text_rows(8, 1));
    recipe = joined(recipe, {"--eval-data", (workspace / "eval.jsonl").string()});
  }
  const ProcessResult plan = run_program(joined({"plan", workspace.model().string(), "--json"}, recipe));
  EXPECT_EQ(plan.exit_code, 0) << plan.error;
  Figures figures{.planned = Json::parse(plan.output)["peak_bytes"].get<int64_t>()};
  ProcessOptions limited;
  limited.limits[RLIMIT_DATA] = static_cast<rlim_t>(figures.planned + 16 * kMiB);
  std::vector<std::string> words = {"train",        workspace.model().string(), "--data", workspace.data().string(),
                                    "--output-dir", (workspace / name).string()};
  const ProcessResult run = run_program(joined(words, recipe), limited);
  EXPECT_EQ(run.exit_code, 0) << run.error;
  if (run.exit_code != 0) return figures;
  figures.measured = read_metrics(workspace / name).back()["summary"]["measured_peak_bytes"].get<int64_t>();
  std::filesystem::remove_all(workspace / name);
  return figures;
}

void expect_plan_is_run(const Figures& figures, const std::string& recipe) {
  EXPECT_LE(figures.measured, figures.planned) << recipe;
  if (figures.planned >= 512 * 1000 * 1000) {
    EXPECT_GE(static_cast<double>(figures.measured), 0.97 * static_cast<double>(figures.planned)) << recipe;
  } else {
    EXPECT_GE(figures.measured, figures.planned - 16 * kMiB) << recipe;
  }
}

void compare(const Workspace& workspace, int recipes, unsigned seed, int64_t longest) {
  std::mt19937 random(seed);
  double least = 100, most = 0;
  int64_t widest = 0;
  for (int i = 0; i < recipes; ++i) {
    const std::vector<std::string> recipe = random_recipe(random, longest);
    std::string text;
    for (const std::string& word : recipe) text += word + " ";
    const Figures figures = plan_and_run(workspace, recipe, "run" + std::to_string(i), i % 5 == 0);
    expect_plan_is_run(figures, text);
    const double share = 100.0 * static_cast<double>(figures.measured) / static_cast<double>(figures.planned);
    least = std::min(least, share);
    most = std::max(most, share);
    widest = std::max(widest, figures.planned - figures.measured);
  }
  std::printf("%d recipes: measured is %.2f to %.2f %% of planned, at most %.2f MiB below\n", recipes, least, most,
              static_cast<double>(widest) / static_cast<double>(kMiB));
}

TEST(PlanIsRun, small_models_stay_within_16_mebibytes_below_their_plan_and_under_its_limit) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer's own memory is not planned";
  const Workspace tied(Json{{"tie_word_embeddings", true}});
  const Workspace wide(Json{{"hidden_size", 192},
                            {"intermediate_size", 512},
                            {"num_hidden_layers", 3},
                            {"num_attention_heads", 6},
                            {"num_key_value_heads", 2},
                            {"head_dim", 32},
                            {"vocab_size", 9000}});
  compare(tied, 20, 1, 256);
  compare(wide, 20, 2, 256);
}

TEST(PlanIsRun, every_family_stays_within_16_mebibytes_below_its_plan_in_full_and_by_lora) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer's own memory is not planned";
  for (const auto& [name, config] : test::families(5000)) {
    const Workspace workspace(config);
    for (const char* method : {"full", "lora"})
      for (const bool recompute : {false, true}) {
        std::vector<std::string> recipe = {"--max-steps", "2", "--batch",   "2", "--seq",    "128",
                                           "--accum",     "2", "--threads", "2", "--method", method};
        if (std::string(method) == "lora") recipe.insert(recipe.end(), {"--lora-target-modules", "all-linear"});
        if (recompute) recipe.insert(recipe.end(), {"--gradient-checkpointing", "--bf16"});
        const Figures figures = plan_and_run(workspace, recipe, "run", recompute);
        expect_plan_is_run(figures, name + " " + method);
        std::printf("%-12s %-4s %s: %.2f MiB planned, %.2f measured\n", name.c_str(), method, recompute ? "bf16" : "fp32",
                    static_cast<double>(figures.planned) / static_cast<double>(kMiB),
                    static_cast<double>(figures.measured) / static_cast<double>(kMiB));
      }
  }
}

TEST(PlanIsRun, every_optimizer_stays_within_16_mebibytes_below_its_plan) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer's own memory is not planned";
  const Workspace workspace(Json{{"hidden_size", 128}, {"intermediate_size", 256}, {"vocab_size", 20000}});
  std::map<std::string, int64_t> planned;
  for (const std::string optim : {"adamw_torch", "adamw_bf16_states", "adamw_8bit", "lion_32bit", "lion_8bit", "adafactor",
                                  "sgd", "sgd --optim-args momentum=0.9"}) {
    std::vector<std::string> recipe = {"--max-steps", "2", "--batch", "1", "--seq", "64", "--method", "full", "--optim"};
    recipe.push_back(optim.substr(0, optim.find(' ')));
    if (optim.find(' ') != std::string::npos) recipe = joined(recipe, {"--optim-args", "momentum=0.9"});
    const Figures figures = plan_and_run(workspace, recipe, "run", false);
    expect_plan_is_run(figures, optim);
    planned[optim] = figures.planned;
  }
  // The states differ and nothing else does: for each of the parameters 8 bytes, 4, 2.03, 4, 1.02, next to none and none.
  const auto saved = [&](const std::string& optim) { return static_cast<double>(planned["adamw_torch"] - planned[optim]); };
  const double whole = saved("sgd");
  EXPECT_NEAR(saved("adamw_bf16_states"), whole / 2, 0.01 * whole);
  EXPECT_NEAR(saved("adamw_8bit"), whole * (8 - 2.03125) / 8, 0.01 * whole);
  EXPECT_NEAR(saved("lion_32bit"), whole / 2, 0.01 * whole);
  EXPECT_NEAR(saved("lion_8bit"), whole * (8 - 1.015625) / 8, 0.01 * whole);
  EXPECT_NEAR(saved("adafactor"), whole, 0.03 * whole);
  EXPECT_NEAR(saved("sgd --optim-args momentum=0.9"), whole / 2, 0.01 * whole);
}

// Headers and lists of names lie outside the arena, and reading them takes the most: when a run is taken up again.
TEST(PlanIsRun, files_of_thousands_of_tensors_are_in_the_plan_also_of_a_run_that_is_taken_up_again) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer's own memory is not planned";
  const Workspace experts(Json{{"model_type", "qwen3_moe"},
                               {"architectures", {"Qwen3MoeForCausalLM"}},
                               {"hidden_size", 32},
                               {"head_dim", 16},
                               {"num_hidden_layers", 40},
                               {"num_experts", 96},
                               {"num_experts_per_tok", 2},
                               {"intermediate_size", 64},
                               {"moe_intermediate_size", 16},
                               {"num_attention_heads", 2},
                               {"num_key_value_heads", 2},
                               {"vocab_size", 300},
                               {"max_position_embeddings", 512}});
  const Workspace deep(Json{{"hidden_size", 32}, {"intermediate_size", 48}, {"num_hidden_layers", 240}});
  for (const auto& [workspace, method] :
       {std::pair{&experts, "full"}, std::pair{&experts, "lora"}, std::pair{&deep, "lora"}}) {
    std::vector<std::string> recipe = {"--seq", "48", "--method", method, "--optim", "adamw_8bit"};
    if (workspace == &deep) recipe = joined(recipe, {"--lora-target-modules", "all-linear", "--use-dora"});
    const ProcessResult plan =
        run_program(joined({"plan", workspace->model().string(), "--json", "--threads", "2"}, recipe));
    ASSERT_EQ(plan.exit_code, 0) << plan.error;
    Figures figures{.planned = Json::parse(plan.output)["peak_bytes"].get<int64_t>()};
    const std::filesystem::path output = *workspace / method;
    for (const char* steps : {"1", "2"}) {
      const ProcessResult run = run_program(workspace->train(
          output, joined(recipe, {"--max-steps", steps, "--resume-from-checkpoint", steps[0] == '2' ? "true" : "false"})));
      ASSERT_EQ(run.exit_code, 0) << run.error;
      figures.measured = read_metrics(output).back()["summary"]["measured_peak_bytes"].get<int64_t>();
      EXPECT_LE(figures.measured, figures.planned) << method;
      if (steps[0] == '2') expect_plan_is_run(figures, method);
      std::printf("%s, step %s: %.2f MiB planned, %.2f measured\n", method, steps,
                  static_cast<double>(figures.planned) / static_cast<double>(kMiB),
                  static_cast<double>(figures.measured) / static_cast<double>(kMiB));
    }
  }
}

// Of the 16 bytes that each parameter needs with AdamW, 8 go to the disk and 4 are needed for one weight at a time.
TEST(PlanIsRun, states_on_disk_and_updates_in_backward_are_met_too) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer's own memory is not planned";
  const Workspace workspace(Json{{"hidden_size", 256},
                                 {"intermediate_size", 1024},
                                 {"num_hidden_layers", 12},
                                 {"num_attention_heads", 8},
                                 {"num_key_value_heads", 8},
                                 {"head_dim", 32},
                                 {"vocab_size", 8000}});
  std::map<std::string, double> planned;
  for (const std::string optim :
       {"adamw_torch", "paged_adamw_32bit", "paged_adamw_8bit", "paged_lion_32bit", "paged_lion_8bit"})
    for (const bool in_backward : {false, true})
      for (const char* method : {"full", "lora"}) {
        std::vector<std::string> recipe = {"--max-steps", "2",    "--batch", "1",   "--seq",           "64",
                                           "--method",    method, "--optim", optim, "--max-grad-norm", "0",
                                           "--packing",   "false"};
        if (in_backward) recipe = joined(recipe, {"--optimizer-in-bwd", "--bf16"});
        const Figures figures = plan_and_run(workspace, recipe, "run", in_backward);
        const std::string name = optim + (in_backward ? " in backward " : " ") + method;
        expect_plan_is_run(figures, name);
        planned[name] = static_cast<double>(figures.planned) / static_cast<double>(kMiB);
        std::printf("%-36s %.2f MiB planned, %.2f measured\n", name.c_str(), planned[name],
                    static_cast<double>(figures.measured) / static_cast<double>(kMiB));
      }
  EXPECT_LT(planned["paged_adamw_32bit full"], 0.62 * planned["adamw_torch full"]);
  EXPECT_LT(planned["paged_adamw_32bit in backward full"], 0.5 * planned["paged_adamw_32bit full"]);
}

// Seed and generator are fixed: these recipes are the same on every machine. make exhaustive draws others, and more:
// SNUG_COMBINATIONS of them, from SNUG_SEED on.
TEST(PlanIsRun, a_hundred_random_combinations_of_techniques_run_as_planned_or_are_refused_with_a_reason) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer's own memory is not planned";
  const auto number = [](const char* name, int usual) {
    const char* const text = std::getenv(name);
    return text == nullptr ? usual : std::stoi(text);
  };
  const int wanted = number("SNUG_COMBINATIONS", 100);
  const Workspace workspace(Json{{"hidden_size", 128}, {"intermediate_size", 192}, {"vocab_size", 3000}});
  std::mt19937 random(static_cast<unsigned>(number("SNUG_SEED", 11)));
  int ran = 0;
  std::map<std::string, int> refusals;
  int64_t widest = 0;
  for (int i = 0; ran < wanted; ++i) {
    const std::vector<std::string> recipe = random_combination(random);
    std::string text;
    for (const std::string& word : recipe) text += word + " ";
    const ProcessResult plan = run_program(joined({"plan", workspace.model().string(), "--json"}, recipe));
    if (plan.exit_code != 0) {
      EXPECT_EQ(plan.exit_code, 1) << text << plan.error;
      EXPECT_NE(plan.error.find(" ("), std::string::npos) << text << plan.error;  // the way out, in brackets
      EXPECT_EQ(std::count(plan.error.begin(), plan.error.end(), '\n'), 1) << text << plan.error;
      ++refusals[plan.error];
      continue;
    }
    const Figures figures = plan_and_run(workspace, recipe, "run", i % 7 == 0);
    expect_plan_is_run(figures, text);
    widest = std::max(widest, figures.planned - figures.measured);
    ++ran;
  }
  std::printf("%d combinations ran, at most %.2f MiB below their plan; refused:\n", ran,
              static_cast<double>(widest) / static_cast<double>(kMiB));
  for (const auto& [reason, count] : refusals) std::printf("%5d  %s", count, reason.c_str());
}

// Checkpoints after each step, the result, and the adapter merged into the model.
TEST(PlanIsRun, saving_and_merging_never_take_more_than_the_run) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer's own memory is not planned";
  const Workspace work(
      Json{{"hidden_size", 256}, {"intermediate_size", 1024}, {"num_hidden_layers", 6}, {"vocab_size", 8000}});
  int recipes = 0, merged = 0;
  for (const char* method : {"full", "lora", "qlora"})
    for (const char* precision : {"--bf16", "--fp16", ""})
      for (const char* optim : {"adamw_torch", "adamw_8bit", "paged_adamw_32bit"}) {
        std::vector<std::string> keys = {"--method", method, "--optim", optim, "--seq", "48", "--save-steps", "1"};
        if (*precision != 0) keys.emplace_back(precision);
        if (recipes % 2 == 1) keys = joined(keys, {"--offload-weights", "disk", "--offload-activations", "disk"});
        const std::filesystem::path output = work / "run";
        const ProcessResult run = run_program(work.train(output, joined(keys, {"--max-steps", "2"})));
        ASSERT_EQ(run.exit_code, 0) << run.error;
        const Json summary = read_metrics(output).back()["summary"];
        const auto planned = summary["planned_peak_bytes"].get<int64_t>();
        EXPECT_LE(summary["measured_peak_bytes"].get<int64_t>(), planned) << method << precision << optim;
        ++recipes;
        if (std::string(method) != "full") {
          ProcessOptions limited;
          limited.limits[RLIMIT_DATA] = static_cast<rlim_t>(planned);
          const ProcessResult merge =
              run_program({"merge", output.string(), "--output-dir", (work / "merged").string()}, limited);
          ASSERT_EQ(merge.exit_code, 0) << method << precision << optim << merge.error;
          std::filesystem::remove_all(work / "merged");
          ++merged;
        }
        std::filesystem::remove_all(output);
      }
  EXPECT_EQ(recipes, 27);
  EXPECT_EQ(merged, 18);
}

TEST(PlanIsRun, plans_of_half_a_gigabyte_and_more_are_met_to_3_percent) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer's own memory is not planned";
  const Workspace large(Json{{"hidden_size", 768},
                             {"intermediate_size", 2048},
                             {"num_hidden_layers", 8},
                             {"num_attention_heads", 12},
                             {"num_key_value_heads", 4},
                             {"head_dim", 64},
                             {"vocab_size", 64000},
                             {"tie_word_embeddings", false}});
  compare(large, std::getenv("SNUG_EXHAUSTIVE") != nullptr ? 8 : 4, 3, 64);
}

}  // namespace

}  // namespace snug::cli_tests
