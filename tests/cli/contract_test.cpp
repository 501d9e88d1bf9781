// What scripts rely on: exit codes, the JSON of a plan, one line for each mistake that names the place and the way out, and
// nothing half-written left behind.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <sstream>

#include "cli/support_workspace.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

int64_t lines_of(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

// The lines of stderr that are the program's own complaint.
std::vector<std::string> complaints(const ProcessResult& result) {
  std::vector<std::string> list;
  std::istringstream text(result.error);
  for (std::string line; std::getline(text, line);)
    if (line.starts_with("snug: ")) list.push_back(line);
  return list;
}

::testing::AssertionResult refused(const ProcessResult& result, int exit_code, const std::vector<std::string>& parts) {
  if (result.exit_code != exit_code)
    return ::testing::AssertionFailure() << "exit code " << result.exit_code << " instead of " << exit_code << ": "
                                         << result.error;
  if (!result.output.empty()) return ::testing::AssertionFailure() << "prints on stdout: " << result.output;
  const std::vector<std::string> lines = complaints(result);
  if (lines.size() != 1 || !result.error.ends_with(lines[0] + "\n"))
    return ::testing::AssertionFailure() << "not one line, and last: " << result.error;
  for (const std::string& part : parts)
    if (lines[0].find(part) == std::string::npos)
      return ::testing::AssertionFailure() << "'" << lines[0] << "' does not say '" << part << "'";
  return ::testing::AssertionSuccess();
}

// A run that failed before its first step leaves nothing that looks like a result.
::testing::AssertionResult left_no_result(const fs::path& output) {
  if (!unfinished(output).empty()) return ::testing::AssertionFailure() << unfinished(output)[0];
  for (const char* name :
       {"model.safetensors", "adapter_model.safetensors", "adapter_config.json", "config.json", "metrics.jsonl"})
    if (fs::exists(output / name)) return ::testing::AssertionFailure() << output / name << " is there";
  if (newest_step(output) >= 0) return ::testing::AssertionFailure() << "a checkpoint is there";
  return ::testing::AssertionSuccess();
}

const std::vector<std::string> kShort = {"--seq", "64", "--max-steps", "3", "--save-steps", "0"};

// ---- Calls

TEST(Calls, help_and_version_exit_0_on_stdout) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--help"}, {"help"}, {"help", "keys"}, {"train", "--help"}, {"--version"}, {"models"}}) {
    const ProcessResult result = run_program(words);
    EXPECT_EQ(result.exit_code, 0) << words[0];
    EXPECT_GT(lines_of(result.output), 0) << words[0];
    EXPECT_EQ(result.error, "") << words[0];
  }
}

TEST(Calls, usage_mistakes_exit_2_and_name_what_is_near) {
  const Workspace work;
  const std::string model = work.model().string();
  EXPECT_EQ(run_program({}).exit_code, 2);
  EXPECT_TRUE(refused(run_program({"trian", model}), 2, {"'trian'", "train"}));
  EXPECT_TRUE(refused(run_program({"plan", model, "--lora-rr", "8"}), 2, {"--lora-rr", "'lora_r'"}));
  EXPECT_TRUE(refused(run_program({"plan", model, "--learning-rte=1"}), 2, {"--learning-rte", "'learning_rate'"}));
  EXPECT_TRUE(refused(run_program({"plan", model, "--seq"}), 2, {"--seq needs a value"}));
  EXPECT_TRUE(refused(run_program({"plan", model, model}), 2, {"one model"}));
  EXPECT_TRUE(refused(run_program({"plan"}), 2, {"which model?"}));
  EXPECT_TRUE(refused(run_program({"train", model}), 2, {"which data?"}));
  EXPECT_TRUE(refused(run_program({"init"}), 2, {"which model?"}));
}

TEST(Calls, another_trainers_flag_that_stands_alone_means_true) {
  const Workspace work;
  const std::string model = work.model().string();
  EXPECT_TRUE(refused(run_program({"plan", model, "--fp8"}), 1, {"fp8", "not supported yet"}));
  EXPECT_EQ(run_program({"plan", model, "--fp8", "false"}).exit_code, 0);
  EXPECT_EQ(run_program({"plan", model, "--push-to-hub"}).exit_code, 0);
}

TEST(Calls, resuming_where_nothing_is_says_so_and_starts) {
  const Workspace work;
  const ProcessResult result =
      run_program(work.train(work / "out", {"--seq", "64", "--max-steps", "1", "--resume-from-checkpoint"}));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.error.find("holds no finished checkpoint: starting anew"), std::string::npos) << result.error;
}

TEST(Calls, flags_and_a_recipe_may_stand_in_any_order_and_flags_win) {
  const Workspace work;
  put(work / "recipe.yaml", "model: " + work.outline().string() + "\nmethod: full\nmax_length: 64\n");
  const std::string recipe = (work / "recipe.yaml").string();
  for (const std::vector<std::string>& words : {std::vector<std::string>{"plan", recipe, "--json", "--bf16", "--seq", "32"},
                                                {"plan", "--json", "--seq", "32", "--bf16", recipe},
                                                {"plan", "--seq=32", "--bf16", "true", "--json", recipe},
                                                {"plan", "--seq", "32", "--bf16", recipe, "--json"}}) {
    const ProcessResult result = run_program(words);
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const Json set = Json::parse(result.output)["recipe"];
    EXPECT_EQ(set["method"], "full");
    EXPECT_EQ(set["max_length"], "32");
    EXPECT_EQ(set["bf16"], "true");
  }
  const ProcessResult foreign = run_program({"plan", recipe, "--report-to", "wandb", "--do-train"});
  EXPECT_EQ(foreign.exit_code, 0) << foreign.error;
  EXPECT_EQ(complaints(foreign),
            (std::vector<std::string>{"snug: report-to has no effect here", "snug: do-train has no effect here"}));
  EXPECT_TRUE(refused(run_program({"plan", recipe, recipe}), 2, {"one recipe"}));
  EXPECT_TRUE(refused(run_program({"plan", recipe, "--seq", "--bf16"}), 2, {"--seq needs a value"}));
}

TEST(Calls, bad_values_exit_1_and_name_the_key) {
  const Workspace work;
  const std::string model = work.model().string();
  EXPECT_TRUE(refused(run_program({"plan", model, "--batch", "0"}), 1, {"batch"}));
  EXPECT_TRUE(refused(run_program({"plan", model, "--batch", "two"}), 1, {"--batch", "two"}));
  EXPECT_TRUE(refused(run_program({"plan", model, "--memory", "24"}), 1, {"--memory", "24"}));
  EXPECT_TRUE(refused(run_program({"plan", "openai-community/gpt2", "--seq", "100000"}), 1, {"max_length", "1024"}));
  EXPECT_TRUE(refused(run_program({"plan", model, "--lora-target-modules", "qproj"}), 1, {"qproj"}));
  EXPECT_TRUE(refused(run_program({"plan", model, "--optim", "adagrad"}), 1, {"optim", "adagrad"}));
  EXPECT_TRUE(refused(run_program({"plan", (work / "nothing").string()}), 1, {"nothing"}));
  put(work / "recipe.yaml", "model: " + model + "\nlora_r: 8\nmax_length: many\n");
  EXPECT_TRUE(refused(run_program({"plan", (work / "recipe.yaml").string()}), 1, {"recipe.yaml:3", "max_length", "many"}));
  put(work / "recipe.yaml", "model: " + model + "\nlorar: 8\n");
  EXPECT_TRUE(refused(run_program({"plan", (work / "recipe.yaml").string()}), 1, {"recipe.yaml:2", "lorar", "lora_r"}));
}

// ---- The plan's JSON

TEST(PlanJson, is_one_object_with_every_key_of_the_contract_and_sums_to_the_peak) {
  const Workspace work;
  for (const std::vector<std::string>& keys : {std::vector<std::string>{"--method", "full"},
                                               {"--method", "lora", "--bf16"},
                                               {"--method", "full", "--gradient-checkpointing"},
                                               {"--method", "lora", "--max-steps", "10"},
                                               {"--method", "full", "--memory", "1MiB"}}) {
    const ProcessResult result =
        run_program(joined({"plan", work.outline().string(), "--json", "--seq", "128", "--batch", "3"}, keys));
    EXPECT_EQ(result.error, "");
    const Json plan = Json::parse(result.output);
    for (const char* key :
         {"schema", "model", "recipe", "device", "budget_bytes", "total_parameters", "trainable_parameters", "fits",
          "peak_bytes", "peak_stage", "breakdown", "stages", "homes", "ranks", "cost"})
      EXPECT_TRUE(plan.contains(key)) << key;
    EXPECT_EQ(plan["schema"], 1);
    EXPECT_EQ(plan["fits"].get<bool>(), result.exit_code == 0);
    EXPECT_EQ(result.exit_code, plan["peak_bytes"] <= plan["budget_bytes"] ? 0 : 3);
    EXPECT_TRUE(plan["device"].contains("name") && plan["device"].contains("memory_bytes"));
    int64_t sum = 0;
    for (const char* key : {"weights", "adapters", "gradients", "optimizer", "activations", "temporaries", "workspace",
                            "batch", "comm", "runtime"})
      sum += plan["breakdown"].at(key).get<int64_t>();
    EXPECT_EQ(plan["breakdown"].size(), 10U);
    EXPECT_EQ(sum, plan["peak_bytes"].get<int64_t>());
    int64_t highest = 0;
    for (const char* key : {"load", "forward", "backward", "optimizer", "evaluate", "generate", "save"}) {
      const Json& stage = plan["stages"].at(key);
      if (!stage.is_null()) highest = std::max(highest, stage.get<int64_t>());
    }
    EXPECT_EQ(highest, plan["peak_bytes"].get<int64_t>());
    EXPECT_EQ(plan["stages"].at(plan["peak_stage"].get<std::string>()), plan["peak_bytes"]);
    for (const char* key : {"device", "host", "disk"}) EXPECT_TRUE(plan["homes"].contains(key)) << key;
    EXPECT_EQ(plan["ranks"].size(), 1U);
    EXPECT_EQ(plan["ranks"][0]["count"], 1);
    for (const char* key : {"tokens", "flops", "seconds", "dollars"}) EXPECT_TRUE(plan["cost"].contains(key)) << key;
    if (keys.back() == "10") {
      EXPECT_EQ(plan["cost"]["tokens"], 10 * 128 * 3);
    }
  }
}

TEST(PlanJson, counts_every_parameter_of_the_model) {
  const Workspace work;
  const Json plan = Json::parse(run_program({"plan", work.outline().string(), "--json", "--method", "full"}).output);
  // 3 blocks of q, o (32x32), k, v (16x32), gate, up, down (64x32), two norms; embedding and head of 257; the last norm.
  const int64_t block = 2 * 32 * 32 + 2 * 16 * 32 + 3 * 64 * 32 + 2 * 32;
  EXPECT_EQ(plan["total_parameters"], 3 * block + 2 * 257 * 32 + 32);
  EXPECT_EQ(plan["trainable_parameters"], plan["total_parameters"]);
  const Json lora =
      Json::parse(run_program({"plan", work.outline().string(), "--json", "--method", "lora", "--lora-r", "4"}).output);
  EXPECT_EQ(lora["trainable_parameters"], 3 * (4 * (32 + 32) + 4 * (32 + 16)));  // q_proj and v_proj
}

// ---- Inputs

TEST(Inputs, a_run_that_succeeds_writes_every_metric_and_a_summary) {
  const Workspace work;
  const ProcessResult result = run_program(work.train(work / "out", kShort));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_TRUE(complaints(result).empty()) << result.error;
  const std::vector<Json> metrics = read_metrics(work / "out");
  ASSERT_EQ(metrics.size(), 4U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(metrics[static_cast<size_t>(i)]["step"], i + 1);
    for (const char* key : {"loss", "grad_norm", "learning_rate", "tokens_per_second", "memory_bytes"})
      EXPECT_TRUE(metrics[static_cast<size_t>(i)].at(key).is_number()) << key;
  }
  EXPECT_EQ(metrics[0]["learning_rate"].get<double>(), 2e-4) << "what auto means for LoRA";
  for (const char* key : {"planned_peak_bytes", "measured_peak_bytes", "steps", "train_loss", "tokens_per_second"})
    EXPECT_TRUE(metrics[3]["summary"].at(key).is_number()) << key;
}

TEST(Inputs, missing_files_are_named) {
  const Workspace work;
  const std::string model = work.model().string(), data = work.data().string(), out = (work / "out").string();
  EXPECT_TRUE(refused(run_program({"train", (work / "none").string(), "--data", data, "--output-dir", out}), 1, {"none"}));
  EXPECT_TRUE(refused(run_program({"train", model, "--data", (work / "none.jsonl").string(), "--output-dir", out}), 1,
                      {"none.jsonl"}));
  EXPECT_TRUE(refused(run_program(joined({"train", work.outline().string(), "--data", data, "--output-dir", out}, kShort)),
                      1, {"outline", "model.safetensors"}));
  EXPECT_TRUE(left_no_result(out));
  fs::remove(work.model() / "tokenizer.json");
  EXPECT_TRUE(refused(run_program(work.train(out, kShort)), 1, {"tokenizer.json"}));
  EXPECT_TRUE(left_no_result(out));
}

TEST(Inputs, damaged_weights_are_refused_by_name) {
  const Workspace work;
  const fs::path weights = work.model() / "model.safetensors", out = work / "out";
  const std::string whole = contents(weights);
  put(weights, whole.substr(0, whole.size() - 100));
  EXPECT_TRUE(refused(run_program(work.train(out, kShort)), 1, {"model.safetensors"}));
  put(weights, whole.substr(0, 5));
  EXPECT_TRUE(refused(run_program(work.train(out, kShort)), 1, {"model.safetensors", "too short"}));
  std::string noise = whole;
  noise[20] = '\x01';
  put(weights, noise);
  EXPECT_TRUE(refused(run_program(work.train(out, kShort)), 1, {"model.safetensors"}));
  put(weights, "");
  EXPECT_TRUE(refused(run_program(work.train(out, kShort)), 1, {"model.safetensors"}));
  EXPECT_TRUE(left_no_result(out));
}

TEST(Inputs, weights_of_another_shape_or_name_are_refused_by_name) {
  const Workspace work;
  const fs::path config = work.model() / "config.json", out = work / "out";
  const Json given = Json::parse(contents(config));
  const auto with = [&](const char* key, const Json& value) {
    Json changed = given;
    changed[key] = value;
    put(config, changed.dump());
    return run_program(work.train(out, kShort));
  };
  EXPECT_TRUE(refused(with("intermediate_size", 65), 1, {"model.safetensors", "shape"}) ||
              refused(with("intermediate_size", 65), 1, {"model", "another shape", "config.json"}));
  EXPECT_TRUE(refused(with("num_hidden_layers", 4), 1, {"layers.3.", "model"}));
  EXPECT_TRUE(refused(with("num_hidden_layers", 2), 1, {"layers.2.", "config.json"}));
  EXPECT_TRUE(left_no_result(out));
}

TEST(Inputs, bad_rows_are_refused_by_file_and_line) {
  const Workspace work;
  const fs::path out = work / "out";
  const auto with = [&](const std::string& line) {
    put(work.data(), "{\"text\": \"good\"}\n" + line + "\n{\"text\": \"good\"}\n");
    return run_program(work.train(out, kShort));
  };
  EXPECT_TRUE(refused(with(R"({"text": NaN})"), 1, {"data.jsonl:2"}));
  EXPECT_TRUE(refused(with(R"({"text": "open)"), 1, {"data.jsonl:2"}));
  EXPECT_TRUE(refused(with(R"({"txt": "no such field"})"), 1, {"data.jsonl:2", "text"}));
  EXPECT_TRUE(refused(with(R"({"text": 7})"), 1, {"data.jsonl:2", "text"}));
  EXPECT_TRUE(refused(with(R"({"prompt": "a", "completion": "b"})"), 1, {"data.jsonl:2"}));
  EXPECT_TRUE(refused(with("{\"text\": \"\xFF\xFE\"}"), 1, {"data.jsonl:2"}));
  put(work.data(), "");
  EXPECT_TRUE(refused(run_program(work.train(out, kShort)), 1, {"data.jsonl", "no rows"}));
  EXPECT_TRUE(left_no_result(out));
}

TEST(Inputs, a_token_beyond_the_vocabulary_is_refused) {
  const Workspace work({{"vocab_size", 100}, {"eos_token_id", 1}, {"bos_token_id", 1}});
  const ProcessResult result = run_program(work.train(work / "out", kShort));
  EXPECT_TRUE(refused(result, 1, {"data.jsonl:1", "vocabulary of 100", "tokenizer"}));
  EXPECT_TRUE(left_no_result(work / "out"));
}

// ---- Output directories

TEST(Output, a_directory_that_holds_a_run_is_not_touched_without_a_word) {
  const Workspace work;
  const fs::path out = work / "out";
  ASSERT_EQ(run_program(work.train(out, kShort)).exit_code, 0);
  const std::string before = contents(out / "adapter_model.safetensors"), metrics = contents(out / "metrics.jsonl");
  EXPECT_TRUE(refused(run_program(work.train(out, kShort)), 1,
                      {out.string(), "--resume-from-checkpoint", "--overwrite-output-dir"}));
  EXPECT_EQ(contents(out / "metrics.jsonl"), metrics);
  const ProcessResult resumed = run_program(work.train(out, joined(kShort, {"--resume-from-checkpoint"})));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.error;
  EXPECT_TRUE(contents(out / "adapter_model.safetensors") == before) << "nothing was left to do";
  EXPECT_EQ(step_lines(out).size(), 3U);
  const ProcessResult anew =
      run_program(work.train(out, joined(kShort, {"--overwrite-output-dir", "--seed", "9", "--max-steps", "2"})));
  EXPECT_EQ(anew.exit_code, 0) << anew.error;
  EXPECT_EQ(newest_step(out), 2);
  EXPECT_EQ(step_lines(out).size(), 2U);
}

TEST(Output, overwriting_keeps_the_old_run_until_the_new_one_can_start) {
  const Workspace work;
  const fs::path out = work / "out";
  ASSERT_EQ(run_program(work.train(out, kShort)).exit_code, 0);
  fs::rename(work.model() / "model.safetensors", work / "away");
  EXPECT_TRUE(refused(run_program(work.train(out, joined(kShort, {"--overwrite-output-dir"}))), 1, {"model.safetensors"}));
  EXPECT_EQ(newest_step(out), 3);
  EXPECT_EQ(step_lines(out).size(), 3U);
}

TEST(Output, resuming_with_another_recipe_or_data_is_refused) {
  const Workspace work;
  const fs::path out = work / "out";
  ASSERT_EQ(run_program(work.train(out, kShort)).exit_code, 0);
  const auto resumed = [&](const std::vector<std::string>& keys) {
    return run_program(work.train(out, joined(joined(kShort, {"--resume-from-checkpoint"}), keys)));
  };
  EXPECT_TRUE(refused(resumed({"--seed", "9"}), 1, {"checkpoint-3", "seed was 42 and is now 9"}));
  EXPECT_TRUE(refused(resumed({"--accum", "2"}), 1, {"checkpoint-3", "gradient_accumulation_steps"}));
  EXPECT_TRUE(refused(resumed({"--method", "full"}), 1, {"checkpoint-3", "method was lora"}));
  EXPECT_TRUE(refused(resumed({"--lora-r", "4"}), 1, {"checkpoint-3"}));
  put(work.data(), text_rows(70, 2));
  EXPECT_TRUE(refused(resumed({}), 1, {"checkpoint-3", "data_"}));
  EXPECT_EQ(step_lines(out).size(), 3U);
}

TEST(Output, a_damaged_checkpoint_is_refused_by_file) {
  const Workspace work;
  const fs::path out = work / "out";
  ASSERT_EQ(run_program(work.train(out, kShort)).exit_code, 0);
  const fs::path state = out / "checkpoint-3" / "optimizer.safetensors";
  std::string bytes = contents(state);
  bytes[bytes.size() - 9] = static_cast<char>(bytes[bytes.size() - 9] ^ 1);
  put(state, bytes);
  EXPECT_TRUE(refused(run_program(work.train(out, joined(kShort, {"--resume-from-checkpoint"}))), 1,
                      {"optimizer.safetensors", "checksum", "older checkpoint"}));
}

TEST(Output, only_one_run_at_a_time_trains_in_a_directory) {
  const Workspace work;
  const fs::path out = work / "out";
  Process first(work.train(out, {"--seq", "64", "--batch", "2", "--max-steps", "400", "--save-steps", "0"}));
  ASSERT_TRUE(first.wait_for_error_lines(4));
  EXPECT_TRUE(
      refused(run_program(work.train(out, kShort)), 1, {"another snug is training here", out.string(), "--output-dir"}));
  first.send(SIGTERM);
  EXPECT_EQ(first.finish().exit_code, 143);
  EXPECT_GT(newest_step(out), 0);
}

TEST(Output, a_directory_that_cannot_be_made_is_named) {
  const Workspace work;
  put(work / "file", "not a directory");
  EXPECT_TRUE(refused(run_program(work.train(work / "file" / "out", kShort)), 1, {"file/out"}));
  EXPECT_EQ(contents(work / "file"), "not a directory");
  EXPECT_TRUE(
      refused(run_program({"init", (work.outline() / "config.json").string(), "--output-dir", work.model().string()}), 1,
              {"model.safetensors", "--output-dir"}));
}

TEST(Output, a_full_disk_is_named_and_leaves_no_half_of_a_checkpoint) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer's runtime dies of the limit";
  const Workspace work({{"vocab_size", 2000}, {"hidden_size", 64}});
  ProcessOptions options;
  options.limits[RLIMIT_FSIZE] = 600'000;  // less than the optimizer's state: stands for a full disk
  const ProcessResult result = run_program(work.train(work / "out", joined(kShort, {"--method", "full"})), options);
  EXPECT_TRUE(refused(result, 1, {"out/checkpoint-3"})) << result.signal;
  EXPECT_EQ(newest_step(work / "out"), -1);
  EXPECT_TRUE(unfinished(work / "out").empty());
  EXPECT_FALSE(fs::exists(work / "out" / "model.safetensors"));
}

TEST(Output, a_disk_too_small_for_pages_is_found_before_the_first_step) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer's runtime dies of the limit";
  const Workspace work({{"vocab_size", 2000}, {"hidden_size", 64}});
  ProcessOptions options;
  options.limits[RLIMIT_FSIZE] = 600'000;
  const std::vector<std::string> keys = joined(kShort, {"--method", "full", "--optim", "paged_adamw_32bit"});
  const ProcessResult result = run_program(work.train(work / "out", keys), options);
  EXPECT_TRUE(refused(result, 1, {"out/.pages", "bytes for pages on disk", "not paged"})) << result.signal;
  EXPECT_EQ(result.error.find("step 1/"), std::string::npos) << result.error;
  EXPECT_FALSE(fs::exists(work / "out" / ".pages"));
}

// /sys holds no bytes of anybody's.
TEST(Output, pages_where_there_is_no_room_do_not_fit) {
  const std::pair<const char*, const char*> kNear[] = {
      {"paged_adamw_32bit", "adamw_torch"}, {"paged_adamw_8bit", "adamw_8bit"}, {"paged_lion_32bit", "lion_32bit"}};
  for (const auto& [optim, near] : kNear) {
    const Workspace work({{"vocab_size", 2000}, {"hidden_size", 64}});
    const std::vector<std::string> keys = joined(kShort, {"--method", "full", "--optim", optim});
    const ProcessResult result = run_program(work.train("/sys/snug", keys));
    EXPECT_EQ(result.exit_code, 3);
    const std::vector<std::string> lines = complaints(result);
    ASSERT_EQ(lines.size(), 2U) << result.error;
    EXPECT_NE(lines[0].find("are needed on disk, where 0 B are free"), std::string::npos) << lines[0];
    EXPECT_NE(lines[1].find(fmt::format("--optim {} needs", near)), std::string::npos) << lines[1];
  }
}

// ---- What snug writes, snug reads

TEST(RoundTrip, a_trained_checkpoint_is_a_model_to_plan_and_train) {
  const Workspace work;
  const std::vector<std::string> keys = joined(kShort, {"--method", "full", "--lr", "1e-3"});
  ASSERT_EQ(run_program(work.train(work / "out", keys)).exit_code, 0);
  const fs::path trained = work / "out";
  const ProcessResult plan = run_program({"plan", trained.string(), "--json", "--method", "full"});
  EXPECT_EQ(plan.exit_code, 0) << plan.error;
  for (const fs::path& model : {trained, trained / "checkpoint-3"}) {
    const fs::path next = work / ("next-" + model.filename().string());
    const ProcessResult run = run_program(joined(
        {"train", model.string(), "--data", work.data().string(), "--output-dir", next.string(), "--threads", "2"}, keys));
    ASSERT_EQ(run.exit_code, 0) << run.error;
    EXPECT_LT(read_metrics(next)[0]["loss"].get<double>(), read_metrics(trained)[0]["loss"].get<double>());
  }
}

TEST(RoundTrip, an_adapter_is_read_back_to_the_same_loss) {
  const Workspace work;
  const std::vector<std::string> keys =
      joined(kShort, {"--lora-target-modules", "all-linear", "--lora-r", "4", "--lora-alpha", "16", "--lr", "1e-2",
                      "--eval-on-start", "--eval-data", work.data().string()});
  const ProcessResult first = run_program(work.train(work / "out", keys));
  ASSERT_EQ(first.exit_code, 0) << first.error;
  const ProcessResult second =
      run_program(work.train(work / "more", joined(keys, {"--adapter-name-or-path", (work / "out").string()})));
  ASSERT_EQ(second.exit_code, 0) << second.error;
  std::vector<double> before, after;  // the last evaluation of the first run is the first of the second
  for (const Json& line : read_metrics(work / "out"))
    if (line.contains("eval_loss")) before.push_back(line["eval_loss"]);
  for (const Json& line : read_metrics(work / "more"))
    if (line.contains("eval_loss")) after.push_back(line["eval_loss"]);
  ASSERT_EQ(before.size(), 2U);
  EXPECT_LT(before[1], before[0]);
  EXPECT_EQ(after.at(0), before[1]);
  EXPECT_TRUE(refused(run_program(work.train(work / "other", joined(keys, {"--lora-r", "8", "--adapter-name-or-path",
                                                                           (work / "out").string()}))),
                      1, {"out", "lora_r"}));
}

// What the adapter's file says need not be said again, to plan, to fit or to train.
TEST(RoundTrip, an_adapter_says_what_it_is) {
  const Workspace work;
  const std::vector<std::string> kind = {
      "--lora-r", "3", "--lora-alpha", "24", "--lora-target-modules", "v_proj,down_proj", "--use-rslora", "true"};
  ASSERT_EQ(run_program(work.train(work / "out", joined(kShort, kind))).exit_code, 0);
  const std::vector<std::string> from = {"--adapter-name-or-path", (work / "out").string()};
  const auto planned = [&](const std::vector<std::string>& keys) {
    const ProcessResult run = run_program(joined({"plan", work.model().string(), "--json"}, keys));
    EXPECT_EQ(run.exit_code, 0) << run.error;
    const Json plan = Json::parse(run.output);
    return std::pair(plan["trainable_parameters"].get<int64_t>(), plan["peak_bytes"].get<int64_t>());
  };
  EXPECT_EQ(planned(from), planned(kind));
  EXPECT_NE(planned(from), planned({}));
  EXPECT_EQ(run_program(joined({"fit", work.model().string()}, from)).exit_code, 0);
  const ProcessResult more = run_program(work.train(work / "more", joined(kShort, from)));
  EXPECT_EQ(more.exit_code, 0) << more.error;
  for (const char* command : {"plan", "fit"}) {
    const std::vector<std::string> asked = {command, work.model().string()};
    EXPECT_TRUE(refused(run_program(joined(joined(asked, from), {"--lora-r", "8"})), 1, {"out", "lora_r is 8", "has 3"}));
    EXPECT_TRUE(refused(run_program(joined(joined(asked, from), {"--method", "full"})), 1, {"out", "method: full"}));
    EXPECT_TRUE(refused(run_program(joined(asked, {"--adapter-name-or-path", (work / "no").string()})), 1,
                        {"no", "adapter_config.json"}));
    std::filesystem::create_directories(work / "classifier");
    put(work / "classifier" / "adapter_config.json",
        R"({"peft_type": "LORA", "task_type": "SEQ_CLS", "r": 8, "lora_alpha": 8, "target_modules": ["q_proj"]})");
    EXPECT_TRUE(refused(run_program(joined(asked, {"--adapter-name-or-path", (work / "classifier").string()})), 1,
                        {"classifier", "SEQ_CLS"}));
  }
}

TEST(RoundTrip, evaluation_counts_documents_and_does_not_depend_on_training_shape) {
  const Workspace work;
  for (const char* accumulation : {"1", "3"}) {
    const ProcessResult run = run_program(
        work.train(work / accumulation, joined(kShort, {"--batch", "2", "--accum", accumulation, "--eval-steps", "1",
                                                        "--eval-on-start", "--eval-data", work.data().string()})));
    ASSERT_EQ(run.exit_code, 0) << run.error;
  }
  const Json one = read_metrics(work / "1").at(0), three = read_metrics(work / "3").at(0);
  EXPECT_EQ(one, three);
  // Text longer than 64 tokens is cut into several documents; a document of one token predicts nothing.
  EXPECT_GE(one["eval_documents"].get<int>(), 80);
  EXPECT_LE(one["eval_documents"].get<int>(), 300);
  EXPECT_NEAR(one["eval_loss"].get<double>(), 5.7, 0.5);
}

}  // namespace

}  // namespace snug::cli_tests
