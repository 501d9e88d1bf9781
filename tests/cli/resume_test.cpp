// Runs that are killed or stopped, and go on: nothing of what they learn may depend on it.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <random>

#include "cli/support_workspace.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

struct Variant {
  std::string name;
  std::vector<std::string> keys;
  unsigned seed;
};

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

const Variant kVariants[] = {
    {"lora", {"--method", "lora", "--lora-target-modules", "all-linear", "--save-steps", "2"}, 11},
    {"full", {"--method", "full", "--save-steps", "3"}, 12},
    {"lora_with_dora_dropout_and_noise",
     {"--method", "lora", "--use-dora", "--use-rslora", "--lora-dropout", "0.2", "--neftune-noise-alpha", "5",
      "--rank-pattern", "q_proj=3", "--gradient-checkpointing", "--save-steps", "2"},
     16},
    {"lora_of_which_two_are_kept", {"--method", "lora", "--save-steps", "1", "--save-total-limit", "2"}, 15},
    {"lora_bf16_packed_tightly", {"--method", "lora", "--bf16", "--save-steps", "1", "--seq", "48"}, 13},
    {"full_fp16", {"--method", "full", "--fp16", "--loss-scale-window", "3", "--save-steps", "2"}, 16},
    {"full_bf16_recomputed_evaluated",
     {"--method", "full", "--bf16", "--gradient-checkpointing", "--save-steps", "2", "--eval-steps", "2"},
     14},
    {"lora_with_all_away",
     {"--method", "lora", "--bf16", "--offload-activations", "disk", "--offload-weights", "disk", "--optim",
      "paged_adamw_32bit", "--save-steps", "2"},
     17},
    {"full_bf16_with_all_away",
     {"--method", "full", "--bf16", "--optim", "paged_adamw_8bit", "--offload-activations", "disk", "--offload-weights",
      "disk", "--offload-gradients", "disk", "--save-steps", "3"},
     16}};

class Resume : public ::testing::TestWithParam<Variant> {
 protected:
  std::vector<std::string> words(const fs::path& output, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> keys = {"--seq", "64", "--batch", "2", "--accum", "2", "--max-steps", "12", "--lr", "1e-3"};
    keys = joined(keys, GetParam().keys);
    if (GetParam().name.ends_with("evaluated"))
      keys = joined(keys, {"--eval-on-start", "--eval-data", work_.data().string()});
    return work_.train(output, joined(keys, more));
  }

  std::string weights() const {
    return GetParam().name.starts_with("lora") ? "adapter_model.safetensors" : "model.safetensors";
  }

  void expect_equal_runs(const fs::path& truth, const fs::path& run) const {
    EXPECT_TRUE(contents(truth / weights()) == contents(run / weights())) << "other weights in " << run;
    for (const char* name : {"optimizer.safetensors", "snug.json"})
      EXPECT_TRUE(contents(truth / "checkpoint-12" / name) == contents(run / "checkpoint-12" / name))
          << name << " differs in " << run;
    EXPECT_EQ(step_lines(truth), step_lines(run)) << run;
    EXPECT_EQ(unfinished(run), std::vector<std::string>()) << run;
  }

  Workspace work_;
};

// A number from 0 to below `bound`; the same sequence everywhere.
unsigned below(std::minstd_rand& random, unsigned bound) { return static_cast<unsigned>(random() % bound); }

// Where a run was when it was killed, from what it had said and left.
std::string moment_of(const ProcessResult& killed, const fs::path& output) {
  std::vector<std::string> drafts = unfinished(output);
  for (const std::string& draft : drafts)
    if (draft.find("checkpoint-") != std::string::npos || draft.find("result.tmp") != std::string::npos) return "saving";
  for (const std::string& draft : drafts)
    if (draft.find("dataset") != std::string::npos) return "tokenizing";
  const std::string& said = killed.error;
  if (said.find("step ") != std::string::npos) return "steps";
  if (said.find("sequences of") != std::string::npos) return "load";
  return said.empty() ? "start-up" : "before load";
}

TEST_P(Resume, a_run_killed_at_random_moments_ends_with_the_bits_of_one_that_was_not) {
  const bool away = GetParam().name.ends_with("away");  // then what counts is what ends with pages in flight
  const int wanted_kills = testing::kSanitized ? 4 : away ? 26 : 14;
  const fs::path truth = work_ / "truth";
  const ProcessResult whole = run_program(words(truth));
  ASSERT_EQ(whole.exit_code, 0) << whole.error;
  const auto lines = static_cast<unsigned>(std::count(whole.error.begin(), whole.error.end(), '\n'));
  std::minstd_rand random(GetParam().seed);
  std::map<std::string, int> moments;
  int kills = 0;
  for (int run = 0; kills < wanted_kills; ++run) {
    const fs::path output = work_ / fmt::format("run-{}", run);
    bool finished = false;
    for (int start = 0; !finished; ++start) {
      Process process(words(
          output, start == 0 ? std::vector<std::string>() : std::vector<std::string>{"--resume-from-checkpoint", "true"}));
      // A moment: so many lines after the start, and then a while. Every other one in the time before the first line.
      const unsigned after = below(random, 3) == 0 ? 0 : below(random, lines / 2);
      const unsigned microseconds = below(random, after == 0 ? 60'000 : 12'000) * (testing::kSanitized ? 10 : 1);
      if (kills < wanted_kills && process.wait_for_error_lines(after)) {
        ::usleep(microseconds);
        process.send(SIGKILL);
      }
      const ProcessResult result = process.finish();
      finished = result.signal != SIGKILL;
      if (finished) {
        ASSERT_EQ(result.exit_code, 0) << "run " << run << ", start " << start << ": " << result.error;
      } else {
        const std::string moment = moment_of(result, output);
        ++moments[moment];
        if (!away || moment == "load" || moment == "steps" || moment == "saving") ++kills;
      }
    }
    expect_equal_runs(truth, output);
    if (HasFailure()) return;
    fs::remove_all(output);
  }
  for (const auto& [moment, count] : moments) std::cout << moment << " " << count << "  ";
  std::cout << "\n";
}

INSTANTIATE_TEST_SUITE_P(killed, Resume, ::testing::ValuesIn(kVariants), [](const auto& test) { return test.param.name; });

// Every optimizer's states come back to the bit: steps 4 to 6 from the checkpoint of step 3 are those of the whole run.
TEST(ResumeOptimizer, a_checkpoint_holds_every_state) {
  const Workspace work;
  for (const std::string optim : {"adamw_bf16_states", "adamw_8bit", "lion_32bit", "lion_8bit", "adafactor", "sgd"})
    for (const std::string method : {"full", "lora"}) {
      std::vector<std::string> keys = {"--seq", "64",   "--batch", "2",       "--max-steps", "6",        "--save-steps",
                                       "3",     "--lr", "1e-3",    "--optim", optim,         "--method", method};
      if (optim == "sgd") keys = joined(keys, {"--optim-args", "momentum=0.9"});
      if (method == "full") keys = joined(keys, {"--bf16"});
      const std::string name = optim + "_" + method;
      const ProcessResult whole = run_program(work.train(work / name, keys));
      ASSERT_EQ(whole.exit_code, 0) << whole.error;
      const fs::path other = work / (name + "_resumed");
      const std::string checkpoint = (work / name / "checkpoint-3").string();
      const ProcessResult rest = run_program(work.train(other, joined(keys, {"--resume-from-checkpoint", checkpoint})));
      ASSERT_EQ(rest.exit_code, 0) << rest.error;
      const std::string weights = method == "lora" ? "adapter_model.safetensors" : "model.safetensors";
      EXPECT_TRUE(contents(work / name / weights) == contents(other / weights)) << name;
      const fs::path state = fs::path("checkpoint-6") / "optimizer.safetensors";
      EXPECT_TRUE(contents(work / name / state) == contents(other / state)) << name;
    }
}

TEST(ResumeOptimizer, checkpoints_of_weights_alone_are_smaller_and_no_run_goes_on_from_them) {
  const Workspace work;
  for (const std::string method : {"full", "lora"}) {
    const std::vector<std::string> keys = {"--seq", "64",           "--batch", "2",        "--max-steps",
                                           "4",     "--save-steps", "2",       "--method", method};
    const std::string weights = method == "lora" ? "adapter_model.safetensors" : "model.safetensors";
    ASSERT_EQ(run_program(work.train(work / "whole", joined(keys, {"--overwrite-output-dir"}))).exit_code, 0);
    const fs::path output = work / method;
    const ProcessResult run = run_program(work.train(output, joined(keys, {"--save-only-model"})));
    ASSERT_EQ(run.exit_code, 0) << run.error;
    EXPECT_TRUE(contents(output / weights) == contents(work / "whole" / weights)) << method;
    EXPECT_TRUE(contents(output / "checkpoint-2" / weights) == contents(work / "whole" / "checkpoint-2" / weights))
        << method;
    EXPECT_FALSE(fs::exists(output / "checkpoint-2" / "optimizer.safetensors"));
    EXPECT_FALSE(fs::exists(output / "checkpoint-4"));  // the result is as much
    const ProcessResult refused =
        run_program(work.train(output, joined(keys, {"--resume-from-checkpoint", "true", "--max-steps", "6"})));
    EXPECT_EQ(refused.exit_code, 1) << refused.error;
    EXPECT_NE(refused.error.find("save_only_model"), std::string::npos) << refused.error;
  }
}

// Where states lie says nothing of them: a run goes on with either, to the same bits.
TEST(ResumeOptimizer, a_run_goes_on_with_states_paged_or_not) {
  const Workspace work({{"vocab_size", 9000}, {"hidden_size", 128}});  // two chunks and a rest
  for (const std::string& optim : testing::thinned(std::vector<std::string>{"adamw", "adamw_8bit", "lion", "lion_8bit"}, 3))
    for (const bool before : {false, true}) {
      const std::vector<std::string> keys = {"--seq", "64",   "--batch", "2",      "--max-steps", "6",   "--save-steps",
                                             "3",     "--lr", "1e-3",    "--bf16", "--method",    "full"};
      const auto paged = [&](bool pages) { return std::vector<std::string>{"--optim", (pages ? "paged_" : "") + optim}; };
      const std::string name = optim + (before ? "_paged" : "");
      const ProcessResult whole = run_program(work.train(work / name, joined(keys, paged(before))));
      ASSERT_EQ(whole.exit_code, 0) << whole.error;
      const fs::path other = work / (name + "_resumed");
      const std::string checkpoint = (work / name / "checkpoint-3").string();
      const ProcessResult rest =
          run_program(work.train(other, joined(joined(keys, paged(!before)), {"--resume-from-checkpoint", checkpoint})));
      ASSERT_EQ(rest.exit_code, 0) << rest.error;
      EXPECT_TRUE(contents(work / name / "model.safetensors") == contents(other / "model.safetensors")) << name;
      for (const char* file : {"optimizer.safetensors", "snug.json"})
        EXPECT_TRUE(contents(work / name / "checkpoint-6" / file) == contents(other / "checkpoint-6" / file)) << name;
      EXPECT_FALSE(fs::exists(other / ".pages"));
    }
}

TEST(ResumeOptimizer, another_optimizer_is_refused_by_name) {
  const Workspace work;
  const std::vector<std::string> keys = {"--seq", "64", "--max-steps", "2", "--save-steps", "1"};
  ASSERT_EQ(run_program(work.train(work / "run", joined(keys, {"--optim", "lion_32bit"}))).exit_code, 0);
  const ProcessResult other =
      run_program(work.train(work / "run", joined(keys, {"--optim", "adamw_torch", "--resume-from-checkpoint", "true"})));
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_NE(other.error.find("optim was lion_32bit and is now adamw_torch"), std::string::npos) << other.error;
}

class Stop : public ::testing::TestWithParam<int> {};

TEST_P(Stop, a_signal_finishes_the_step_saves_and_resuming_gives_the_same_bits) {
  const Workspace work;
  const std::vector<std::string> keys = {"--seq", "64",           "--batch", "2",    "--accum", "2",        "--max-steps",
                                         "100",   "--save-steps", "0",       "--lr", "1e-3",    "--method", "full"};
  const ProcessResult whole = run_program(work.train(work / "truth", keys));
  ASSERT_EQ(whole.exit_code, 0) << whole.error;
  const fs::path output = work / "stopped";
  Process process(work.train(output, keys));
  ASSERT_TRUE(process.wait_for_error_lines(6));  // the plan, two of the data, three steps
  process.send(GetParam());
  const ProcessResult stopped = process.finish();
  EXPECT_EQ(stopped.exit_code, 128 + GetParam()) << stopped.error;
  const auto steps = static_cast<int64_t>(step_lines(output).size());
  EXPECT_GE(steps, 3);
  EXPECT_LT(steps, 100);
  EXPECT_NE(stopped.error.find("stopping after this step, with a checkpoint"), std::string::npos) << stopped.error;
  EXPECT_EQ(newest_step(output), steps) << "the step that was finished is the step that was saved";
  const ProcessResult resumed = run_program(work.train(output, joined(keys, {"--resume-from-checkpoint", "true"})));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.error;
  EXPECT_NE(resumed.error.find(fmt::format("checkpoint-{} after step {}", steps, steps)), std::string::npos)
      << resumed.error;
  EXPECT_TRUE(contents(work / "truth" / "model.safetensors") == contents(output / "model.safetensors"));
  EXPECT_TRUE(contents(work / "truth" / "checkpoint-100" / "optimizer.safetensors") ==
              contents(output / "checkpoint-100" / "optimizer.safetensors"));
  EXPECT_EQ(step_lines(work / "truth"), step_lines(output));
}

TEST_P(Stop, a_signal_during_evaluation_loses_no_step) {
  const Workspace work;
  put(work / "eval.jsonl", text_rows(400, 5));
  std::minstd_rand random(3);
  for (int trial = 0; trial < 4; ++trial) {
    const fs::path output = work / fmt::format("run-{}", trial);
    Process process(work.train(output, {"--seq", "64", "--batch", "2", "--max-steps", "100", "--save-steps", "0",
                                        "--eval-steps", "1", "--eval-data", (work / "eval.jsonl").string()}));
    ASSERT_TRUE(process.wait_for_error_lines(4 + below(random, 4)));
    ::usleep(below(random, 4'000));
    process.send(GetParam());
    const ProcessResult stopped = process.finish();
    EXPECT_EQ(stopped.exit_code, 128 + GetParam()) << stopped.error;
    int64_t last = 0;
    for (const Json& line : read_metrics(output))
      if (line.contains("loss")) last = line["step"];
    EXPECT_EQ(newest_step(output), last == 0 ? -1 : last) << stopped.error;
  }
}

INSTANTIATE_TEST_SUITE_P(by, Stop, ::testing::Values(SIGINT, SIGTERM),
                         [](const auto& test) { return std::string(test.param == SIGINT ? "SIGINT" : "SIGTERM"); });

}  // namespace

}  // namespace snug::cli_tests
