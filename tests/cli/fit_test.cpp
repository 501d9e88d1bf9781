// snug fit and the planner's questions as a user asks them.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "cli/support_process.h"
#include "cli/support_workspace.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> flags_of(const Json& settings) {
  std::vector<std::string> flags;
  for (const auto& [key, value] : settings.items()) {
    flags.push_back("--" + key);
    flags.push_back(value.get<std::string>());
  }
  return flags;
}

Json last_receipt(const fs::path& file) {
  const std::string text = contents(file);
  return Json::parse(text.substr(text.rfind('\n', text.size() - 2) + 1));
}

// Where neither is said a card gets the half precision that people run on it, as fit has it.
TEST(PlanCommand, assumes_what_people_run_on_the_card) {
  const auto peak = [](const std::vector<std::string>& more) {
    const ProcessResult run = run_program(joined({"plan", "meta-llama/Llama-3.2-1B", "--json", "--runtime", "snug"}, more));
    return Json::parse(run.output)["peak_bytes"].get<int64_t>();
  };
  for (const auto& [card, half] : {std::pair("A100-80GB", "--bf16"), std::pair("T4", "--fp16")}) {
    const int64_t assumed = peak({"--gpu", card});
    EXPECT_EQ(assumed, peak({"--gpu", card, half})) << card;
    EXPECT_LT(assumed, peak({"--gpu", card, "--bf16", "false"})) << card;
    const ProcessResult text = run_program({"plan", "meta-llama/Llama-3.2-1B", "--gpu", card});
    EXPECT_NE(text.output.find(std::string(half + 2) + " true"), std::string::npos) << text.output;
  }
  const std::string recipe = (std::filesystem::temp_directory_path() / fmt::format("snug-plain-{}.yaml", getpid())).string();
  put(recipe, "model_name_or_path: meta-llama/Llama-3.2-1B\n");  // a recipe says what it says
  const ProcessResult run = run_program({"plan", recipe, "--gpu", "A100-80GB", "--json", "--runtime", "snug"});
  EXPECT_EQ(Json::parse(run.output)["peak_bytes"].get<int64_t>(), peak({"--gpu", "A100-80GB", "--bf16", "false"}));
  std::filesystem::remove(recipe);
}

TEST(FitCommand, every_recipe_shown_is_what_plan_says_of_it) {
  const std::vector<std::string> asked = {"meta-llama/Llama-3.1-8B", "--gpu", "RTX-4090", "--seq", "1024", "--bf16"};
  const ProcessResult fit = run_program(joined(joined({"fit"}, asked), {"--method", "lora", "--accum", "16", "--json"}));
  ASSERT_EQ(fit.exit_code, 0) << fit.error;
  const Json answer = Json::parse(fit.output);
  ASSERT_TRUE(answer["fits"].get<bool>());
  const Json front = answer["methods"][0]["front"];
  ASSERT_GE(front.size(), 2U);
  for (const Json& choice : front) {
    const ProcessResult plan = run_program(
        joined(joined(joined({"plan"}, asked), {"--method", "lora", "--accum", "16", "--runtime", "snug", "--json"}),
               flags_of(choice["settings"])));
    EXPECT_EQ(plan.exit_code, 0) << plan.error;
    const Json planned = Json::parse(plan.output);
    EXPECT_EQ(planned["peak_bytes"], choice["peak_bytes"]);
    EXPECT_DOUBLE_EQ(planned["cost"]["step_seconds"].get<double>(), choice["step_seconds"].get<double>());
  }
}

TEST(FitCommand, the_written_recipe_trains_within_the_memory) {
  const Workspace work({{"hidden_size", 128}, {"intermediate_size", 384}});
  const fs::path recipe = work / "fitted.yaml";
  const ProcessResult fit = run_program({"fit", work.model().string(), "--memory", "40MiB", "--seq", "256", "--threads", "2",
                                         "--data", work.data().string(), "--write", recipe.string()});
  ASSERT_EQ(fit.exit_code, 0) << fit.output << fit.error;
  EXPECT_NE(fit.output.find("best for 40.0 MiB"), std::string::npos) << fit.output;
  EXPECT_NE(fit.output.find("lengths "), std::string::npos) << fit.output;  // the data was counted
  const ProcessResult train =
      run_program({"train", recipe.string(), "--max-steps", "2", "--output-dir", (work / "out").string()});
  ASSERT_EQ(train.exit_code, 0) << train.error;
  const Json summary = read_metrics(work / "out").back()["summary"];
  EXPECT_LE(summary["planned_peak_bytes"].get<int64_t>(), 40 << 20);
  const auto planned = summary["planned_peak_bytes"].get<int64_t>();
  EXPECT_TRUE(testing::kSanitized || summary["measured_peak_bytes"].get<int64_t>() <= planned);
}

// Where no length is asked for: as long as the longest example needs, shorter only where that saves bits or the day.
TEST(FitCommand, the_length_follows_the_data) {
  const auto best_for = [](const char* memory, const char* example_tokens) {
    return run_program({"fit", "meta-llama/Llama-3.1-8B", "--gpu", "RTX-4090", "--memory", memory, "--examples", "100",
                        "--example-tokens", example_tokens, "--runtime", "snug"})
        .output;
  };
  const auto expect_both = [](const std::string& output, const char* method, const char* length) {
    EXPECT_NE(output.substr(0, output.find('\n')).find(method), std::string::npos) << output;
    EXPECT_NE(output.find(length), std::string::npos) << output;
  };
  expect_both(best_for("20GiB", "300"), ": LoRA,", "max_length 1024");    // packed: three examples a row
  expect_both(best_for("16400MiB", "300"), ": LoRA,", "max_length 320");  // nothing is cut, and bf16 fits
  if (testing::kSanitized) return;  // of two searches: the others are more of the same code
  expect_both(best_for("12GiB", "300"), ": LoRA on int8,", "max_length 1024");
  expect_both(best_for("20GiB", "3000"), ": LoRA,", "max_length 3008");
  expect_both(best_for("6GiB", "60000"), "nothing fits", "max_length 1024 (the longest example");
  expect_both(best_for("6700MiB", "60000"), ": QLoRA,", "max_length 1024 (the longest example");  // better than nothing
}

TEST(FitCommand, where_nothing_fits_the_cheapest_that_would_does) {
  const std::vector<std::string> asked = {"meta-llama/Llama-3.1-8B", "--gpu", "RTX-3060", "--method", "full"};
  const ProcessResult fit = run_program(joined({"fit"}, asked));
  EXPECT_EQ(fit.exit_code, 3);
  EXPECT_TRUE(fit.output.starts_with("nothing fits")) << fit.output;
  const std::string words = "the cheapest that would:";
  const size_t begin = fit.output.find(words);
  ASSERT_NE(begin, std::string::npos) << fit.output;
  std::istringstream text(fit.output.substr(begin + words.size()));
  std::vector<std::string> flags;
  for (std::string word; text >> word && word != "needs";) flags.push_back(word);
  const ProcessResult plan = run_program(joined(joined({"plan"}, asked), flags));
  EXPECT_EQ(plan.exit_code, 0) << plan.output << plan.error;
}

TEST(FitCommand, the_documents_example_prints_all_methods_with_hours_and_dollars) {  // S15
  const ProcessResult fit = run_program({"fit", "mistralai/Mistral-7B-v0.1", "--gpu", "A100 80GB", "--examples", "10000",
                                         "--example-tokens", "1024", "--num-train-epochs", "1", "--json"});
  ASSERT_EQ(fit.exit_code, 0) << fit.error;
  const Json answer = Json::parse(fit.output);
  std::vector<std::string> names;
  for (const Json& method : answer["methods"]) {
    names.push_back(method["name"]);
    EXPECT_TRUE(method["fits"].get<bool>()) << method["name"];
    const Json cost = method["front"][0]["cost"];
    EXPECT_EQ(cost["tokens"], 10'240'000);
    EXPECT_EQ(cost["steps"], 625);
    EXPECT_GT(cost["seconds"].get<double>(), 0);
    EXPECT_GT(cost["dollars"].get<double>(), 0);
    EXPECT_GT(cost["flops"].get<double>(), 10'240'000.0 * 4 * 7e9);  // 4 or 6 FLOPs a parameter and token
  }
  EXPECT_EQ(names, (std::vector<std::string>{"full", "LoRA", "LoRA on int8", "QLoRA"}));
}

TEST(PlanQuestions, a_lever_s_saving_is_the_difference_of_two_plans_as_printed) {
  const std::vector<std::string> asked = {"plan", "HuggingFaceTB/SmolLM2-135M", "--batch", "2", "--seq", "512", "--json"};
  const Json plan = Json::parse(run_program(joined(asked, {"--levers"})).output);
  ASSERT_GE(plan["levers"].size(), 10U);
  for (const Json& lever : plan["levers"]) {
    const Json changed = Json::parse(run_program(joined(asked, flags_of(lever["settings"]))).output);
    EXPECT_EQ(plan["peak_bytes"].get<int64_t>() - changed["peak_bytes"].get<int64_t>(), lever["saved_bytes"].get<int64_t>())
        << lever["settings"];
  }
}

TEST(PlanQuestions, bad_input_is_one_line_with_the_way_out) {
  const std::string model = "meta-llama/Llama-3.2-1B";
  struct Case {
    std::vector<std::string> words;
    int exit_code;
    std::string says;
  };
  const Case kCases[] = {
      {{"plan", model, "--gpu", "RTX 4909"}, 1, "RTX-4090"},
      {{"plan", model, "--gpu", ""}, 1, "snug gpus"},
      {{"plan", model, "--solve", "depth"}, 2, "batch, seq or rank"},
      {{"plan", model, "--solve", "rank", "--method", "full"}, 1, "lora"},
      {{"plan", model, "--examples", "10"}, 2, "go together"},
      {{"plan", model, "--examples", "-3", "--example-tokens", "10"}, 1, "whole number"},
      {{"plan", model, "--examples", "99999999999999999999", "--example-tokens", "10"}, 1, "whole number"},
      {{"plan", model, "--memory", "-5GiB"}, 1, "memory"},
      {{"plan", model, "--memory", "24G"}, 1, "GiB"},
      {{"plan", model, "--batch", "0"}, 1, "from 1 to"},
      {{"plan", model, "--seq", "99999999999"}, 1, "max_length"},
      {{"fit", model, "--gpus", "h100"}, 2, "gpu"},
      {{"fit", "meta-llama/Llama-3.2-1C", "--gpu", "h100"}, 1, "Llama-3.2-1B"},
      {{"fit"}, 2, "which model"},
      {{"fit", model, "--gpu", "h100", "--data", "/nowhere.jsonl"}, 1, "tokenizer"},
      {{"plan", model, "--solve", "seq", "--dump"}, 2, "one at a time"},
  };
  for (const Case& test : kCases) {
    const ProcessResult run = run_program(test.words);
    const std::string said = fmt::format("{}", fmt::join(test.words, " "));
    EXPECT_EQ(run.exit_code, test.exit_code) << said << "\n" << run.error;
    EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 1) << said << "\n" << run.error;
    EXPECT_NE(run.error.find(test.says), std::string::npos) << said << "\n" << run.error;
    EXPECT_EQ(run.output, "") << said;
  }
}

TEST(Receipts, a_probe_tells_times_and_runs_correct_them) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer's own time is not what is probed";
  const Workspace work;
  const ProcessOptions options{.environment = {{"XDG_CACHE_HOME", (work / "cache").string()}}};
  const std::vector<std::string> plan = {"plan", work.model().string(), "--seq", "128", "--threads", "2", "--json"};
  EXPECT_TRUE(Json::parse(run_program(plan, options).output)["cost"]["step_seconds"].is_null());
  const ProcessResult probe = run_program({"probe", "--threads", "2"}, options);
  ASSERT_EQ(probe.exit_code, 0) << probe.error;
  const Json probed = Json::parse(run_program(plan, options).output)["cost"];
  EXPECT_GT(probed["step_seconds"].get<double>(), 0);
  EXPECT_EQ(probed["source"], "a probe of this machine with 2 threads");

  const ProcessResult train = run_program(work.train(work / "out", {"--seq", "128", "--max-steps", "3"}), options);
  ASSERT_EQ(train.exit_code, 0) << train.error;
  const Json receipt = last_receipt(work / "cache" / "snug" / "runs.jsonl");
  const Json summary = read_metrics(work / "out").back()["summary"];
  EXPECT_EQ(receipt["planned_peak_bytes"], summary["planned_peak_bytes"]);
  EXPECT_EQ(receipt["measured_peak_bytes"], summary["measured_peak_bytes"]);
  EXPECT_DOUBLE_EQ(receipt["planned_step_seconds"].get<double>(), probed["step_seconds"].get<double>());
  const Json corrected = Json::parse(run_program(plan, options).output)["cost"];
  const auto source = corrected["source"].get<std::string>();
  EXPECT_TRUE(source.starts_with("a probe of this machine with 2 threads, corrected by 1 run of this model (peak "))
      << source;
  EXPECT_NEAR(corrected["step_seconds"].get<double>() / receipt["measured_step_seconds"].get<double>(), 1, 1e-9);

  // A second run is set against the probe, not against what the first one corrected.
  const ProcessResult again = run_program(work.train(work / "again", {"--seq", "128", "--max-steps", "3"}), options);
  ASSERT_EQ(again.exit_code, 0) << again.error;
  const Json second = last_receipt(work / "cache" / "snug" / "runs.jsonl");
  EXPECT_NEAR(second["planned_step_seconds"].get<double>() / probed["step_seconds"].get<double>(), 1, 1e-9);

  put(work / "cache" / "snug" / "probe-2-threads.json", "{\"schema\": 2, \"rates\": [1e999");
  put(work / "cache" / "snug" / "runs.jsonl", std::string(1000, '\xff') + "\n\n{}\n[1]\n");
  EXPECT_TRUE(Json::parse(run_program(plan, options).output)["cost"]["step_seconds"].is_null());
}

}  // namespace

}  // namespace snug::cli_tests
