// What a run leaves for use: which checkpoints stay, TensorBoard's events, the model card.

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/support_workspace.h"
#include "formats/support_events.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kShortRun = {"--seq", "64", "--batch", "2", "--max-steps", "6", "--lr", "1e-3"};

std::vector<std::string> names_in(const fs::path& directory, const std::string& start) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory))
    if (const std::string name = entry.path().filename().string(); name.starts_with(start)) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

// Scalars by tag and step over all files of a directory, as TensorBoard shows them: a session's start takes back what
// earlier files hold from its step on.
std::map<std::string, std::map<int64_t, float>> shown_by_tensorboard(const fs::path& directory) {
  std::map<std::string, std::map<int64_t, float>> series;
  for (const std::string& name : names_in(directory, "events.out.tfevents."))
    for (const ReadEvent& event : read_events(directory / name)) {
      if (event.starts_session)
        for (auto& [tag, points] : series) points.erase(points.lower_bound(event.step), points.end());
      for (const auto& [tag, value] : event.scalars) series[tag][event.step] = value;
    }
  return series;
}

TEST(SaveTotalLimit, KeepsTheNewestCheckpoints) {
  const Workspace work;
  const ProcessResult run =
      run_program(work.train(work / "out", joined(kShortRun, {"--save-steps", "1", "--save-total-limit", "2"})));
  ASSERT_EQ(run.exit_code, 0) << run.error;
  EXPECT_EQ(names_in(work / "out", "checkpoint-"), (std::vector<std::string>{"checkpoint-5", "checkpoint-6"}));
  EXPECT_EQ(unfinished(work / "out"), std::vector<std::string>());
}

TEST(SaveTotalLimit, TheOneThatWasJustWrittenStaysWhateverItsNumber) {
  const Workspace work;
  ASSERT_EQ(run_program(work.train(work / "out", joined(kShortRun, {"--save-steps", "2"}))).exit_code, 0);
  const ProcessResult run = run_program(
      work.train(work / "out", joined(kShortRun, {"--save-steps", "1", "--save-total-limit", "1", "--max-steps", "3",
                                                  "--resume-from-checkpoint", (work / "out/checkpoint-2").string()})));
  ASSERT_EQ(run.exit_code, 0) << run.error;
  EXPECT_EQ(names_in(work / "out", "checkpoint-"), (std::vector<std::string>{"checkpoint-3"}));
}

TEST(SaveTotalLimit, WhatIsNotAFinishedCheckpointIsLeftAlone) {
  const Workspace work;
  fs::create_directories(work / "out/checkpoint-1");
  put(work / "out/checkpoint-1/thesis.txt", "mine");
  ASSERT_EQ(
      run_program(work.train(work / "out", joined(kShortRun, {"--save-steps", "2", "--save-total-limit", "1"}))).exit_code,
      0);
  EXPECT_EQ(names_in(work / "out", "checkpoint-"), (std::vector<std::string>{"checkpoint-1", "checkpoint-6"}));
  EXPECT_EQ(contents(work / "out/checkpoint-1/thesis.txt"), "mine");
}

TEST(TensorBoard, ShowsWhatTheMetricsFileHolds) {
  const Workspace work;
  const ProcessResult run =
      run_program(work.train(work / "out", joined(kShortRun, {"--report-to", "tensorboard", "--eval-on-start", "--eval-data",
                                                              work.data().string(), "--save-steps", "0"})));
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const auto shown = shown_by_tensorboard(work / "out/runs");
  int steps = 0, evaluations = 0;
  for (const Json& line : read_metrics(work / "out")) {
    if (line.contains("loss")) {
      const int64_t step = line["step"];
      for (const char* name : {"loss", "grad_norm", "learning_rate", "tokens_per_second", "memory_bytes"})
        EXPECT_FLOAT_EQ(shown.at(std::string("train/") + name).at(step), line[name].get<float>()) << name;
      EXPECT_GT(shown.at("train/epoch").at(step), 0.0F);
      ++steps;
    } else if (line.contains("eval_loss")) {
      EXPECT_FLOAT_EQ(shown.at("eval/loss").at(line["step"]), line["eval_loss"].get<float>());
      ++evaluations;
    }
  }
  EXPECT_EQ(steps, 6);
  EXPECT_EQ(evaluations, 2);
}

TEST(TensorBoard, AResumedRunTakesTheLostStepsBack) {
  const Workspace work;
  const std::vector<std::string> keys = {"--save-steps", "2",          "--logging-dir", (work / "events").string(),
                                         "--report-to",  "tensorboard"};
  ASSERT_EQ(run_program(work.train(work / "out", joined(kShortRun, keys))).exit_code, 0);
  const auto before = shown_by_tensorboard(work / "events");
  const ProcessResult run = run_program(
      work.train(work / "out", joined(kShortRun, joined(keys, {"--resume-from-checkpoint",
                                                               (work / "out/checkpoint-4").string(), "--max-steps", "5"}))));
  ASSERT_EQ(run.exit_code, 0) << run.error;
  EXPECT_EQ(names_in(work / "events", "events.").size(), 2U);
  const auto after = shown_by_tensorboard(work / "events");
  EXPECT_EQ(before.at("train/loss").size(), 6U);
  EXPECT_EQ(after.at("train/loss").size(), 5U);
  EXPECT_EQ(after.at("train/loss").at(5), before.at("train/loss").at(5));
}

TEST(TensorBoard, AFileThatCannotBeWrittenEndsTheRunInOneLine) {
  const Workspace work;
  put(work / "taken", "");
  const ProcessResult run = run_program(work.train(
      work / "out", joined(kShortRun, {"--report-to", "tensorboard", "--logging-dir", (work / "taken").string()})));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.error.find("taken"), std::string::npos) << run.error;
}

TEST(TensorBoard, OtherServicesAreSaidToHaveNoEffect) {
  const Workspace work;
  const ProcessResult run = run_program(work.train(work / "out", joined(kShortRun, {"--report-to", "wandb"})));
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_NE(run.error.find("report-to has no effect"), std::string::npos) << run.error;
  EXPECT_FALSE(fs::exists(work / "out/runs"));
}

TEST(ModelCard, SaysWhatWasDoneAndNothingOfTheMachine) {
  const Workspace work;
  ASSERT_EQ(run_program(work.train(work / "out", joined(kShortRun, {"--save-steps", "0", "--lora-r", "4"}))).exit_code, 0);
  const std::string card = contents(work / "out/README.md");
  const Json summary = read_metrics(work / "out").back()["summary"];
  EXPECT_TRUE(card.starts_with("---\nbase_model: ")) << card;
  for (const std::string& part :
       {std::string("library_name: peft"), std::string("data.jsonl: "), std::string("| steps | 6 |"),
        std::string("`lora_r` | 4"), "| planned peak memory | " + summary["planned_peak_bytes"].dump() + " bytes |"})
    EXPECT_NE(card.find(part), std::string::npos) << part << "\n" << card;
  EXPECT_EQ(card.find(work.data().string()), std::string::npos) << card;
}

TEST(ModelCard, AFullyTrainedModelIsNoAdapter) {
  const Workspace work;
  ASSERT_EQ(run_program(work.train(work / "out", joined(kShortRun, {"--save-steps", "0", "--method", "full"}))).exit_code,
            0);
  const std::string card = contents(work / "out/README.md");
  EXPECT_NE(card.find("library_name: transformers"), std::string::npos);
  EXPECT_EQ(card.find("peft"), std::string::npos) << card;
}

TEST(ModelCard, OneThatSomebodyWroteStays) {
  const Workspace work;
  fs::create_directories(work / "out");
  put(work / "out/README.md", "my own words");
  ASSERT_EQ(run_program(work.train(work / "out", joined(kShortRun, {"--save-steps", "0"}))).exit_code, 0);
  EXPECT_EQ(contents(work / "out/README.md"), "my own words");
}

}  // namespace

}  // namespace snug::cli_tests
