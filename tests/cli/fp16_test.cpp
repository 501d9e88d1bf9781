// fp16 from end to end: steps that overflow are passed over and the run goes on; losses are those of fp32; a run that was
// stopped beside a skipped step ends with the same bits.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cli/support_workspace.h"
#include "families.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

// Embeddings are multiplied by sqrt(64): a row of 20,000 overflows in f16 where its token comes, and nowhere else.
Json gemma() {
  return {{"model_type", "gemma"},
          {"architectures", {"GemmaForCausalLM"}},
          {"hidden_size", 64},
          {"intermediate_size", 96},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"head_dim", 32},
          {"vocab_size", 257},
          {"initializer_range", 0.05},
          {"max_position_embeddings", 256},
          {"tie_word_embeddings", false},
          {"hidden_activation", "gelu_pytorch_tanh"}};
}

class Overflowing {
 public:
  // Every `nth` row of the data is full of the token 'Z'.
  explicit Overflowing(int nth, float large = 20000.0F) : work_(gemma()) {
    std::string weights = contents(work_.model() / "model.safetensors");
    uint64_t header = 0;
    std::memcpy(&header, weights.data(), sizeof header);
    const Json entry = Json::parse(weights.substr(8, header))["model.embed_tokens.weight"];
    const size_t row = entry["data_offsets"][0].get<size_t>() + 8 + header + size_t{'Z'} * 64 * sizeof(float);
    for (size_t i = 0; i < 64; ++i) std::memcpy(weights.data() + row + i * sizeof large, &large, sizeof large);
    put(work_.model() / "model.safetensors", weights);
    std::string rows;
    int number = 0;
    for (const char c : text_rows(80, 1)) {  // within every sequence that the row is cut into
      rows += c == ' ' && number % nth == 0 && rows.back() != ':' ? " Z" : std::string(1, c);
      if (c == '\n') ++number;
    }
    put(work_.data(), rows);
  }

  ProcessResult train(const std::string& output, const std::vector<std::string>& more) const {
    const std::vector<std::string> keys = {"--seq",       "64",           "--batch", "1",
                                           "--max-steps", "24",           "--lr",    "1e-3",
                                           "--packing",   "false",        "--fp16",  "--loss-scale-window",
                                           "3",           "--save-steps", "1"};
    return run_program(work_.train(work_ / output, joined(keys, more)));
  }
  fs::path operator/(const std::string& name) const { return work_ / name; }

 private:
  Workspace work_;
};

std::vector<Json> steps_of(const fs::path& output) {
  std::vector<Json> steps = read_metrics(output);
  std::erase_if(steps, [](const Json& line) { return !line.contains("loss"); });
  return steps;
}

TEST(Fp16, a_step_that_overflows_is_skipped_changes_nothing_and_the_run_goes_on) {
  const Overflowing runs(6);
  for (const std::string method : {"full", "lora"}) {
    const ProcessResult run = runs.train(method, {"--method", method});
    ASSERT_EQ(run.exit_code, 0) << run.error;
    const std::vector<Json> steps = steps_of(runs / method);
    ASSERT_EQ(steps.size(), 24U);
    const fs::path weights = method == "full" ? "model.safetensors" : "adapter_model.safetensors";
    const auto saved = [&](size_t step, const fs::path& name) {
      return contents(runs / method / fmt::format("checkpoint-{}", step) / name);
    };
    double scale = 65536.0;
    int skips = 0, good_in_a_row = 0, updates = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(steps[i]["loss_scale"], scale) << i;
      EXPECT_NEAR(steps[i]["learning_rate"].get<double>(), 1e-3 * (1 - updates / 24.0), 1e-9) << "as after " << updates;
      const bool skipped = steps[i]["skipped"];
      EXPECT_EQ(steps[i]["grad_norm"].is_null(), skipped);
      if (i > 0) {
        EXPECT_EQ(saved(i, weights) == saved(i + 1, weights), skipped) << i;
        EXPECT_EQ(saved(i, "optimizer.safetensors") == saved(i + 1, "optimizer.safetensors"), skipped) << i;
      }
      skips += skipped ? 1 : 0;
      updates += skipped ? 0 : 1;
      good_in_a_row = skipped ? 0 : good_in_a_row + 1;
      if (skipped) scale /= 2;
      if (good_in_a_row == 3) scale *= 2, good_in_a_row = 0;
    }
    EXPECT_GE(skips, 2) << "so that something was tried";
    EXPECT_LE(skips, 8);
    EXPECT_NE(run.error.find("step skipped"), std::string::npos) << run.error;
    EXPECT_TRUE(std::isfinite(steps.back()["loss"].get<double>()) || steps.back()["skipped"].get<bool>());
    EXPECT_NE(run.output.find("24 steps, mean loss "), std::string::npos) << run.output;
    EXPECT_EQ(run.output.find("nan"), std::string::npos) << run.output;
  }
}

TEST(Fp16, resuming_before_and_after_a_skipped_step_gives_the_same_bits) {
  const Overflowing runs(6);
  ASSERT_EQ(runs.train("truth", {"--method", "full"}).exit_code, 0);
  const std::vector<Json> steps = steps_of(runs / "truth");
  const auto skipped =
      std::find_if(steps.begin() + 1, steps.end(), [](const Json& step) { return step["skipped"].get<bool>(); });
  ASSERT_NE(skipped, steps.end());
  const int64_t step = (*skipped)["step"];
  for (const int64_t from : {step - 1, step}) {
    const std::string name = fmt::format("from-{}", from);
    const std::string checkpoint = (runs / "truth" / fmt::format("checkpoint-{}", from)).string();
    const ProcessResult rest = runs.train(name, {"--method", "full", "--resume-from-checkpoint", checkpoint});
    ASSERT_EQ(rest.exit_code, 0) << rest.error;
    for (const char* file : {"model.safetensors", "optimizer.safetensors", "snug.json"})
      EXPECT_TRUE(contents(runs / "truth" / "checkpoint-24" / file) == contents(runs / name / "checkpoint-24" / file))
          << file;
    const std::vector<Json> again = steps_of(runs / name);
    ASSERT_EQ(static_cast<int64_t>(again.size()), 24 - from);
    for (size_t i = 0; i < again.size(); ++i)
      for (const char* key : {"loss", "loss_scale", "skipped", "grad_norm", "learning_rate"})
        EXPECT_EQ(again[i][key], steps[i + static_cast<size_t>(from)][key]) << key;
  }
}

TEST(Fp16, a_run_whose_every_step_overflows_stops_and_says_what_to_do) {
  const Overflowing runs(1);
  const ProcessResult run = runs.train("run", {});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.error.find("fp16 overflows in step 2"), std::string::npos) << run.error;
  EXPECT_NE(run.error.find(": 20 steps skipped in a row, loss scale down to 0.0"), std::string::npos) << run.error;
  EXPECT_NE(run.error.find("use bf16: true"), std::string::npos) << run.error;
}

TEST(Fp16, a_weight_that_f16_cannot_hold_is_refused_by_name) {
  const Overflowing runs(1, 65520.0F);
  const ProcessResult run = runs.train("run", {});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(
      run.error.find("tensor 'model.embed_tokens.weight' holds 65520, which is too large for float16 (use bf16: true)"),
      std::string::npos)
      << run.error;
}

// In bf16 and fp32, whose loss is not scaled, nothing is skipped.
TEST(Fp16, other_precisions_neither_scale_nor_skip) {
  const Workspace work;
  for (const char* precision : {"--bf16", "--shuffle"}) {
    const fs::path output = work / precision;
    ASSERT_EQ(run_program(work.train(output, {"--seq", "64", "--max-steps", "2", precision})).exit_code, 0);
    for (const Json& step : steps_of(output)) EXPECT_FALSE(step.contains("loss_scale") || step.contains("skipped"));
  }
}

TEST(Fp16, losses_of_forty_steps_are_those_of_fp32) {
  constexpr size_t kSteps = testing::kSanitized ? 8 : 40;
  const auto families = test::families(257);
  for (const std::string family : {"llama", "qwen3", "gemma3_text"}) {
    if (testing::kSanitized && family != "llama") continue;  // forty steps are for the figure
    const auto found = std::find_if(families.begin(), families.end(), [&](const auto& f) { return f.first == family; });
    const Workspace work(found == families.end() ? Json::object() : Json(found->second));
    for (const std::string method : {"full", "lora"}) {
      std::vector<std::string> keys = {"--seq",
                                       "96",
                                       "--batch",
                                       "2",
                                       "--accum",
                                       "2",
                                       "--max-steps",
                                       std::to_string(kSteps),
                                       "--lr",
                                       "1e-3",
                                       "--method",
                                       method,
                                       "--gradient-checkpointing"};
      if (method == "lora") keys = joined(keys, {"--lora-target-modules", "all-linear"});
      ASSERT_EQ(run_program(work.train(work / (method + "32"), keys)).exit_code, 0);
      ASSERT_EQ(run_program(work.train(work / (method + "16"), joined(keys, {"--fp16"}))).exit_code, 0);
      const std::vector<Json> wide = steps_of(work / (method + "32")), half = steps_of(work / (method + "16"));
      ASSERT_EQ(wide.size(), kSteps);
      ASSERT_EQ(half.size(), kSteps);
      double largest = 0;
      for (size_t i = 0; i < kSteps; ++i) {
        const double expected = wide[i]["loss"], loss = half[i]["loss"];
        largest = std::max(largest, std::abs(loss - expected) / expected);
        EXPECT_FALSE(half[i]["skipped"].get<bool>());
      }
      EXPECT_LE(largest, 1e-3) << family << " " << method;
      const double first = wide.front()["loss"], last = wide.back()["loss"];
      EXPECT_TRUE(testing::kSanitized || last < 0.9 * first) << "it learns: from " << first << " to " << last;
      fmt::print("{} {}: losses differ by up to {:.2g} of their value\n", family, method, largest);
    }
  }
}

TEST(Fp16, generating_in_f16_says_what_fp32_says) {
  const Workspace work;
  const auto generate = [&](const std::string& model, const char* precision) {
    return run_program({"generate", model, "--prompt", "the cat", "--max-new-tokens", "12", "--temperature", "0", precision,
                        "true", "--threads", "2"});
  };
  const ProcessResult wide = generate(work.model().string(), "--bf16");
  const ProcessResult half = generate(work.model().string(), "--fp16");
  ASSERT_EQ(half.exit_code, 0) << half.error;
  EXPECT_NE(half.error.find("in float16"), std::string::npos) << half.error;
  EXPECT_NE(wide.error.find("in bfloat16"), std::string::npos) << wide.error;
  // Of a checkpoint that is stored so it is the default.
  const std::string stored = (work / "stored").string();
  ASSERT_EQ(run_program({"init", (work.outline() / "config.json").string(), "--output-dir", stored, "--tokenizer",
                         work.outline().string(), "--seed", "7", "--fp16"})
                .exit_code,
            0);
  const ProcessResult straight = run_program(
      {"generate", stored, "--prompt", "the cat", "--max-new-tokens", "12", "--temperature", "0", "--threads", "2"});
  ASSERT_EQ(straight.exit_code, 0) << straight.error;
  EXPECT_NE(straight.error.find("in float16"), std::string::npos) << straight.error;
  EXPECT_EQ(straight.output, half.output);
}

TEST(Fp16, a_plan_names_its_dtypes) {
  const Workspace work;
  for (const std::string method : {"full", "lora"}) {
    const ProcessResult text = run_program({"plan", work.model().string(), "--fp16", "--method", method});
    ASSERT_EQ(text.exit_code, 0) << text.error;
    std::string flat = text.output;
    for (size_t at = flat.find("\n           "); at != std::string::npos; at = flat.find("\n           "))
      flat.replace(at, 12, " ");
    const std::string master = method == "full" ? "float32" : "float16";
    EXPECT_NE(flat.find("weights float16, master " + master +
                        ", compute float32, activations float16, gradients float32, optimizer float32"),
              std::string::npos)
        << flat;
    const ProcessResult json = run_program({"plan", work.model().string(), "--fp16", "--method", method, "--json"});
    const Json precision = Json::parse(json.output)["recipe"]["precision"];
    EXPECT_EQ(precision.size(), 6U);
    EXPECT_EQ(precision["weights"], "float16");
    EXPECT_EQ(precision["master"], master);
    EXPECT_EQ(precision["activations"], "float16");
  }
  const ProcessResult both = run_program({"plan", work.model().string(), "--fp16", "--bf16"});
  EXPECT_EQ(both.exit_code, 1);
  EXPECT_NE(both.error.find("bf16 and fp16 are both true"), std::string::npos) << both.error;
}

}  // namespace

}  // namespace snug::cli_tests
