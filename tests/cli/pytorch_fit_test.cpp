// snug fit, levers, --solve and explain where the answer is PyTorch's.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/support_process.h"
#include "cli/support_workspace.h"

namespace snug::cli_tests {

namespace {

constexpr const char* kTrl = R"(model_name_or_path: meta-llama/Llama-3.2-1B
dataset_name: tatsu-lab/alpaca
use_peft: true
lora_r: 16
lora_target_modules: [q_proj, k_proj, v_proj, o_proj]
max_length: 2048
per_device_train_batch_size: 16
gradient_accumulation_steps: 1
gradient_checkpointing: false
bf16: true
output_dir: out
)";

std::string write_to(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file) << text;
  return file.string();
}

Json json_of(const std::vector<std::string>& words) {
  const ProcessResult run = run_program(words);
  return run.output.starts_with("{") ? Json::parse(run.output) : Json();
}

// Of the recipe that `pytorch`, an answer of fit to `asked`, names.
void expect_plan_says_the_same(const std::vector<std::string>& asked, const Json& pytorch) {
  std::vector<std::string> words = joined({"plan"}, asked);
  for (const auto& [key, value] : pytorch.at("settings").items()) words = joined(words, {"--" + key, value});
  const Json planned = json_of(joined(words, {"--json"}));
  EXPECT_TRUE(planned.at("fits").get<bool>());
  for (const char* figure : {"allocated_bytes", "reserved_bytes"})
    EXPECT_EQ(planned.at("pytorch").at(figure), pytorch.at(figure)) << figure;
}

TEST(PyTorchFitCommand, a_card_asks_for_pytorchs_search_and_plan_says_the_same_of_its_recipe) {
  const std::vector<std::string> asked = {
      "meta-llama/Llama-3.2-1B", "--gpu", "RTX-3060", "--method", "lora", "--accum", "8", "--seq", "1024", "--bf16"};
  const Json answer = json_of(joined(joined({"fit"}, asked), {"--json"}));
  EXPECT_TRUE(answer.at("fits").get<bool>());
  const Json pytorch = answer.at("pytorch");
  EXPECT_TRUE(pytorch.at("fits").get<bool>());
  const auto memory = answer.at("device").at("memory_bytes").get<int64_t>();
  EXPECT_LE(pytorch.at("device_bytes").at("high").get<int64_t>() + pytorch.at("margin_bytes").get<int64_t>(), memory);
  EXPECT_GE(answer.at("methods").size(), 1U);  // snug's own stand as they were
  expect_plan_says_the_same(asked, pytorch);
  EXPECT_FALSE(json_of(joined(joined({"fit"}, asked), {"--json", "--runtime", "snug"})).contains("pytorch"));
}

// Qwen 3.5 takes turns of four layers, of which the first three have no q_proj.
TEST(PyTorchFitCommand, a_model_that_only_pytorch_knows_is_searched_and_plan_says_the_same_of_its_recipe) {
  const std::vector<std::string> asked = {"Qwen/Qwen3.5-4B", "--gpu", "RTX-4090", "--accum",  "8",
                                          "--seq",           "1024",  "--bf16",   "--method", "lora"};
  const Json answer = json_of(joined(joined({"fit"}, asked), {"--json"}));
  EXPECT_TRUE(answer.at("fits").get<bool>());
  EXPECT_TRUE(answer.at("methods").empty());  // snug's own has no step
  const Json pytorch = answer.at("pytorch");
  EXPECT_GT(pytorch.at("methods").at(0).at("front").at(0).at("step_seconds").get<double>(), 0.0);
  expect_plan_says_the_same(asked, pytorch);
  const ProcessResult without = run_program({"fit", "Qwen/Qwen3.5-4B", "--runtime", "snug", "--gpu", "RTX-4090"});
  EXPECT_EQ(without.exit_code, 1);
}

TEST(PyTorchFitCommand, the_diff_of_another_trainers_recipe_makes_what_was_promised) {
  const Workspace work;
  const std::string recipe = write_to(work / "trl.yaml", kTrl), fitted = (work / "fitted.yaml").string();
  const ProcessResult before = run_program({"plan", recipe, "--gpu", "RTX-3060"});
  EXPECT_EQ(before.exit_code, 3) << before.output;
  const ProcessResult text = run_program({"fit", recipe, "--gpu", "RTX-3060", "--write", fitted});
  ASSERT_EQ(text.exit_code, 0) << text.error;
  EXPECT_TRUE(text.output.starts_with("best for 11.8 GiB of RTX-3060 in TRL on PyTorch: ")) << text.output;
  EXPECT_NE(text.output.find("are kept free: 3 % of what PyTorch may reserve"), std::string::npos) << text.output;
  const Json answer = json_of({"fit", recipe, "--gpu", "RTX-3060", "--json"});
  EXPECT_EQ(answer.at("diff"), answer.at("pytorch").at("diff"));
  const Json planned = json_of({"plan", fitted, "--gpu", "RTX-3060", "--json"});
  EXPECT_TRUE(planned.at("fits").get<bool>());
  EXPECT_EQ(planned.at("pytorch").at("reserved_bytes"), answer.at("pytorch").at("reserved_bytes"));
  EXPECT_EQ(planned.at("file").at("trainer"), "TRL");  // the file was changed, not turned into one of ours
}

TEST(PyTorchFitCommand, where_nothing_fits_the_least_and_the_smallest_card_are_told) {
  const ProcessResult run = run_program({"fit", "meta-llama/Llama-3.1-8B", "--gpu", "RTX-3060", "--method", "full"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_TRUE(run.output.starts_with("nothing fits 11.8 GiB of RTX-3060 in PyTorch: full needs ")) << run.output;
  EXPECT_NE(run.output.find("the smallest card that would take it: "), std::string::npos) << run.output;
}

TEST(PyTorchFitCommand, what_is_not_covered_is_said_in_one_line_and_the_answer_is_snugs) {
  const ProcessResult run = run_program({"fit", "openai/gpt-oss-20b", "--gpu", "H200", "--method", "lora"});
  EXPECT_NE(run.error.find("PyTorch: not known: "), std::string::npos) << run.error;
  EXPECT_NE(run.error.find("what follows is of snug's own engine"), std::string::npos) << run.error;
  EXPECT_NE(run.output.find(" in snug's engine"), std::string::npos) << run.output;
  const Json json = json_of({"fit", "openai/gpt-oss-20b", "--gpu", "H200", "--method", "lora", "--json"});
  EXPECT_NE(json.at("pytorch").at("not_covered").get<std::string>().find("experts"), std::string::npos);
  const Workspace work;
  const std::string liger =
      write_to(work / "liger.yaml", std::string(kTrl) + "use_liger_kernel: true\nliger_kernel_config: {rope: false}\n");
  EXPECT_NE(run_program({"fit", liger, "--gpu", "RTX-3060"}).error.find("liger_kernel_config"), std::string::npos);
  const std::string recipe = write_to(work / "trl.yaml", kTrl);
  EXPECT_NE(run_program({"fit", recipe}).error.find("no card is named"), std::string::npos);
}

TEST(PyTorchFitCommand, levers_and_solve_are_of_the_engine_that_leads) {
  const std::vector<std::string> asked = {"plan", "meta-llama/Llama-3.2-1B", "--gpu", "RTX-3060", "--bf16", "--seq", "1024"};
  EXPECT_TRUE(run_program(joined(asked, {"--solve", "batch"})).output.starts_with("PyTorch: largest "));
  EXPECT_TRUE(run_program(joined(asked, {"--solve", "batch", "--runtime", "snug"})).output.starts_with("snug: largest "));
  const std::vector<std::string> levers = joined(asked, {"--batch", "4", "--levers"});
  EXPECT_NE(run_program(levers).output.find("levers of PyTorch: "), std::string::npos);
  EXPECT_NE(run_program(joined(levers, {"--runtime", "snug"})).output.find("levers of snug's plan: "), std::string::npos);
  const Json json = json_of(joined(levers, {"--json"}));
  EXPECT_FALSE(json.at("levers").empty());
  EXPECT_FALSE(json.at("pytorch").at("levers").empty());
}

TEST(PyTorchFitCommand, explain_advises_by_the_model_of_the_trainer) {
  const Workspace work;
  const std::string recipe = write_to(work / "trl.yaml", kTrl);
  const std::string log =
      write_to(work / "step.log",
               "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
               "capacity of 11.76 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process "
               "has 10.76 GiB memory in use. Of the allocated memory 10.00 GiB is allocated by PyTorch, and "
               "300.00 MiB is reserved by PyTorch but unallocated.\n");
  const ProcessResult run = run_program({"explain", log, recipe});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_NE(run.output.find("as TRL on PyTorch is modelled, this recipe needs"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("levers of TRL on PyTorch"), std::string::npos) << run.output;
  const Json of = json_of({"explain", log, recipe, "--json"}).at("recipe");
  EXPECT_EQ(of.at("engine"), "pytorch");
  EXPECT_LE(of.at("peak_bytes").get<int64_t>(), of.at("budget_bytes").get<int64_t>());
  EXPECT_EQ(json_of({"explain", log, recipe, "--json", "--runtime", "snug"}).at("recipe").at("engine"), "snug");
}

}  // namespace

}  // namespace snug::cli_tests
