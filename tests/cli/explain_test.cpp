// snug explain as its user meets it: files of each kind, pipes, both forms of output, and what it refuses.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "cli/support_workspace.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLog =
    "Traceback (most recent call last):\n  File \"/me/train.py\", line 7, in main\n    loss.backward()\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of 15.70 GiB of "
    "which 44.56 "
    "MiB is free. Including non-PyTorch memory, this process has 15.10 GiB memory in use. Of the allocated memory 11.19 GiB "
    "is "
    "allocated by PyTorch, and 3.31 GiB is reserved by PyTorch but unallocated.\n";

fs::path write(const Workspace& work, const std::string& name, std::string_view text) {
  const fs::path path = work / name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

ProcessResult explain(const fs::path& file, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"explain", file.string()});
  return run_program(more);
}

}  // namespace

TEST(Explain, AnswersFirstThenReckonsThenAdvisesIn80Columns) {
  const Workspace work;
  const ProcessResult result = explain(write(work, "crash.log", kLog));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.output.rfind("GPU 0 is fragmented: 3.31 GiB are reserved and unused", 0), 0u) << result.output;
  const size_t sums = result.output.find("the arithmetic"), where = result.output.find("where\n"),
               change = result.output.find("what to change");
  EXPECT_LT(sums, where);
  EXPECT_LT(where, change);
  EXPECT_NE(result.output.find("your line   /me/train.py:7 in main: loss.backward()"), std::string::npos);
  EXPECT_NE(result.output.find("[up to 3.31 GiB]"), std::string::npos);
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(Explain, PrintsOneObjectForScripts) {
  const Workspace work;
  const ProcessResult result = explain(write(work, "crash.log", kLog), {"--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Json json = Json::parse(result.output);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["kind"], "message");
  EXPECT_EQ(json["cause"], "fragmentation");
  EXPECT_EQ(json["stage"], "backward");
  EXPECT_EQ(json["source"]["file"], "/me/train.py");
  EXPECT_EQ(json["message"]["tried_bytes"], 64 << 20);
  EXPECT_TRUE(json["message"]["allowed_bytes"].is_null());
  EXPECT_EQ(json["messages"], 1);
  EXPECT_EQ(json["advice"][0]["most_bytes"], json["message"]["unallocated_bytes"]);
}

TEST(Explain, ReadsSummariesAndTraces) {
  const fs::path golden = fs::path(SNUG_SOURCE_DIR) / "tests/golden/torch";
  const ProcessResult summary = explain(golden / "memory_summary.txt", {"--json"});
  ASSERT_EQ(summary.exit_code, 0) << summary.error;
  EXPECT_EQ(Json::parse(summary.output)["memory_summary"]["reserved"]["peak_bytes"], int64_t{12} << 30);
  const ProcessResult trace = explain(golden / "profiler_trace.json", {"--json"});
  ASSERT_EQ(trace.exit_code, 0) << trace.error;
  EXPECT_EQ(Json::parse(trace.output)["devices"][0]["peak_allocated_bytes"], 6 << 20);
  EXPECT_EQ(explain(golden / "profiler_trace.json").output.rfind("the CPU: peak 6.00 MiB", 0), 0u);
}

TEST(Explain, RefusesInOneLineWhatTellsNothing) {
  const Workspace work;
  const std::vector<std::pair<fs::path, std::string>> refused = {
      {write(work, "well.log", "all is well\n"), "no out-of-memory message"},
      {write(work, "empty.log", ""), "is empty"},
      {write(work, "snapshot.pickle", "\x80\x04\x95"), "byte 3: the file ends"},
      {write(work, "log.gz", "\x1f\x8b\x08"), "gunzip"},
      {write(work, "trace.json", R"({"traceEvents": [{"ph": "X", "name": "a"}]})"), "profile_memory=True"},
      {work / "nothing", "nothing"},
  };
  for (const auto& [path, part] : refused) {
    const ProcessResult result = explain(path);
    EXPECT_EQ(result.exit_code, 1) << path;
    EXPECT_EQ(result.output, "") << path;
    EXPECT_NE(result.error.find(part), std::string::npos) << result.error;
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  }
}

TEST(Explain, ChangesTheRecipeInItsOwnWords) {
  const Workspace work;
  const fs::path log =
      write(work, "crash.log",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.71 GiB. GPU 0 has a total capacity of "
            "23.64 GiB of which 1.21 GiB is free. Of the allocated memory 21.13 GiB is allocated by PyTorch, and "
            "861.10 MiB is reserved by PyTorch but unallocated.\n");
  const fs::path recipe = write(work, "qlora.yml",
                                "base_model: mistralai/Mistral-7B-v0.1\nload_in_4bit: true\nadapter: qlora\nlora_r: 16\n"
                                "lora_target_linear: true\nsequence_len: 2048\nmicro_batch_size: 4  # mine\n"
                                "gradient_accumulation_steps: 2\nbf16: true\ngradient_checkpointing: true\n");
  const ProcessResult text = run_program({"explain", log.string(), recipe.string()});
  ASSERT_EQ(text.exit_code, 0) << text.error;
  EXPECT_NE(text.output.find("in this recipe (axolotl, mistralai/Mistral-7B-v0.1)"), std::string::npos) << text.output;
  for (const char* line :
       {"\n-micro_batch_size: 4  # mine\n", "\n+micro_batch_size: 2  # mine\n", "\n+gradient_accumulation_steps: 4\n"})
    EXPECT_NE(text.output.find(line), std::string::npos) << text.output;
  EXPECT_EQ(text.output.find("several GPUs"), std::string::npos) << text.output;  // no general advice beside it
  const ProcessResult run = run_program({"explain", log.string(), recipe.string(), "--json"});
  const Json json = Json::parse(run.output)["recipe"];
  EXPECT_EQ(json["enough"], true);
  EXPECT_EQ(json["engine"], "pytorch");
  std::vector<std::string> plan = {"plan",     recipe.string(),
                                   "--gpu",    json["device"].get<std::string>(),
                                   "--memory", std::to_string(json["budget_bytes"].get<int64_t>()) + "B"};
  EXPECT_EQ(run_program(plan).exit_code, 3);
  for (const auto& [key, value] : json["settings"].items()) plan = joined(plan, {"--" + key, value.get<std::string>()});
  EXPECT_EQ(run_program(plan).exit_code, 0);  // what is advised fits when it is planned
}

TEST(Explain, EvaluationIsNotMendedByTrainingsBatch) {
  const Workspace work;
  const fs::path log =
      write(work, "crash.log",
            "  File \"/x/site-packages/transformers/trainer.py\", line 4235, in evaluation_loop\n"
            "    logits = self.gather_function(logits)\n"
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.71 GiB. GPU 0 has a total capacity of "
            "23.64 GiB of which 1.21 GiB is free. Of the allocated memory 21.13 GiB is allocated by PyTorch, and "
            "861.10 MiB is reserved by PyTorch but unallocated.\n");
  const fs::path recipe = write(work, "qlora.yml",
                                "base_model: mistralai/Mistral-7B-v0.1\nload_in_4bit: true\nadapter: qlora\nlora_r: 16\n"
                                "lora_target_linear: true\nsequence_len: 2048\nmicro_batch_size: 4\neval_batch_size: 8\n"
                                "gradient_accumulation_steps: 2\nbf16: true\ngradient_checkpointing: true\n");
  const ProcessResult run = run_program({"explain", log.string(), recipe.string(), "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const Json json = Json::parse(run.output);
  EXPECT_EQ(json["stage"], "evaluation");
  EXPECT_FALSE(json["advice"].empty());  // what helps in evaluation stays
  EXPECT_EQ(json["recipe"]["settings"], Json::object());
  EXPECT_EQ(json["recipe"]["diff"], Json());
  const std::string outside = json["recipe"]["outside_training"];
  // 8 x 2048 tokens x 32000 words x 4 bytes.
  EXPECT_NE(outside.find("1.95 GiB"), std::string::npos) << outside;
  EXPECT_NE(outside.find("eval_batch_size: 1 leaves 250.0 MiB"), std::string::npos) << outside;
}

TEST(Explain, AsksWhichGpuWhereNothingTells) {
  const Workspace work;
  const fs::path log = write(work, "crash.log", "RuntimeError: CUDA error: out of memory\n");
  const fs::path recipe =
      write(work, "r.yaml", "base_model: mistralai/Mistral-7B-v0.1\nadapter: lora\nmicro_batch_size: 1\n");
  const ProcessResult result = run_program({"explain", log.string(), recipe.string()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.error.find("--gpu NAME"), std::string::npos) << result.error;
}

TEST(Explain, TriesAProgramAndNotAFile) {
  const ProcessResult none = run_program({"explain", "--try", "--gpu", "RTX-4090"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.error.find("snug explain --try --gpu RTX-4090 -- python train.py"), std::string::npos) << none.error;
  const ProcessResult no_torch = run_program({"explain", "--try", "--", "true"});
  EXPECT_EQ(no_torch.exit_code, 1);
  EXPECT_NE(no_torch.error.find("used no device"), std::string::npos) << no_torch.error;
}

TEST(Explain, TellsHowItIsCalled) {
  EXPECT_EQ(run_program({"explain"}).exit_code, 2);
  EXPECT_EQ(run_program({"explain", "--what", "a"}).exit_code, 2);
  const ProcessResult help = run_program({"help", "explain"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.output.find("snug explain FILE"), std::string::npos);
}

}  // namespace snug::cli_tests
