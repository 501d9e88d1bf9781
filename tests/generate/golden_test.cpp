// Against transformers and PEFT in fp32: logits after odd chunks and single tokens, greedy continuations, stacked adapters.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "generate/sampler.h"
#include "generate/session.h"
#include "model/config.h"
#include "train/support_golden.h"

namespace snug::testing {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Tokens = std::vector<int32_t>;

// A session over a golden model.
class Model {
 public:
  explicit Model(const fs::path& directory, int64_t capacity, const std::vector<fs::path>& adapters = {},
                 int64_t longest_feed = 1 << 20, bool bf16 = false) {
    GenerationRequest request{.capacity = capacity, .longest_feed = longest_feed, .bf16 = bf16, .lora = {}};
    if (!adapters.empty()) {
      stack_.emplace(adapters);
      request.lora = stack_->lora();
    }
    plan_ = make_plan(read_config(directory), request, this_cpu(2));
    session_.emplace(plan_, directory, stack_ ? &*stack_ : nullptr);
  }
  Session& session() { return *session_; }
  const Plan& plan() const { return plan_; }

  std::vector<float> logits() {
    const auto row = session_->logits();
    std::vector<float> values(row.begin(), row.end());
    const double cap = plan_.model.logit_softcap;
    if (cap > 0)
      for (float& x : values) x = static_cast<float>(cap * std::tanh(static_cast<double>(x) / cap));
    return values;
  }

 private:
  Plan plan_;
  std::optional<AdapterStack> stack_;
  std::optional<Session> session_;
};

Json generation() { return read_json(golden_directory("generation") / "generation.json"); }

Json first_batch(const Json& json) {
  const Json& step = json.contains("steps") ? json["steps"][0] : json;
  return step.contains("micro_batches") ? step["micro_batches"][0] : step;
}

// Feeds `tokens` in pieces of the given sizes, over and over; the logits of each piece's last token are compared.
void compare(Model& model, const Tokens& tokens, const std::vector<size_t>& pieces, std::span<const float> truth, size_t V) {
  model.session().begin(static_cast<int64_t>(tokens.size()));
  std::span<const int32_t> rest = tokens;
  for (size_t i = 0; !rest.empty(); ++i) {
    const size_t count = std::min(pieces[i % pieces.size()], rest.size());
    model.session().feed(rest.first(count));
    rest = rest.subspan(count);
    const size_t last = tokens.size() - rest.size() - 1;
    ASSERT_LE(relative_error(std::span<const float>(model.logits()), truth.subspan(last * V, V)), 1e-5)
        << "position " << last << ", pieces of " << pieces.front();
  }
}

class EveryFamily : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryFamily, logits_by_odd_chunks_and_single_tokens_are_those_of_the_whole_forward) {
  const fs::path directory = golden_directory(GetParam());
  const Json batch = first_batch(read_json(directory / "batch.json"));
  const auto length = batch["documents"][0][0].get<size_t>();
  const Tokens row = batch["tokens"][0];
  const Tokens tokens(row.begin(), row.begin() + static_cast<int64_t>(length));
  const auto truth = read_floats(directory / "expected.safetensors", "logits");  // its first rows are this document's
  Model model(directory, static_cast<int64_t>(row.size()));
  const auto V = static_cast<size_t>(model.plan().model.vocab_size);
  compare(model, tokens, {1}, truth, V);
  compare(model, tokens, {7, 3, 1, 2}, truth, V);
  compare(model, tokens, {5, 1, 1, 33}, truth, V);
  compare(model, tokens, {length}, truth, V);
  // Where the sequence has room behind it, pieces that do not fill a step are fed in a longer one.
  Model roomy(directory, static_cast<int64_t>(row.size()) + 64);
  compare(roomy, tokens, {17, 2, 40, 3}, truth, V);
  compare(roomy, tokens, {length}, truth, V);
}

TEST_P(EveryFamily, greedy_continuations_are_those_of_transformers) {
  const Json truth = generation()["greedy"][GetParam()];
  const Tokens prompt = truth["prompt"], expected = truth["tokens"];
  const int64_t length = static_cast<int64_t>(prompt.size() + expected.size());
  for (const int64_t longest_feed : {int64_t{1}, length}) {
    Model model(golden_directory(GetParam()), length, {}, longest_feed);
    Sampler sampler({}, model.plan().model.logit_softcap, model.session().sampler_room());
    model.session().begin(length);
    model.session().feed(prompt);
    Tokens tokens;
    while (tokens.size() < expected.size()) {
      tokens.push_back(sampler.pick(model.session().logits(), 0, tokens.size()));
      if (tokens.size() < expected.size()) model.session().feed(std::span(&tokens.back(), 1));
    }
    EXPECT_EQ(tokens, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(golden, EveryFamily,
                         ::testing::Values("untied", "tied", "rope_llama3", "mistral_window", "qwen2", "qwen2_yarn", "qwen3",
                                           "qwen3_window", "gemma", "gemma2", "gemma3", "phi3", "phi3_longrope", "gpt2",
                                           "mixtral", "qwen3_moe"),
                         [](const auto& test) { return std::string(test.param); });

class EveryAdapter : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryAdapter, gives_the_logits_of_peft) {
  const fs::path directory = golden_directory(GetParam());
  const Json batch = first_batch(read_json(directory / "batch.json"));
  const Tokens tokens = batch["tokens"][0];
  const auto truth = read_floats(directory / "expected.safetensors", "logits");
  Model model(directory, static_cast<int64_t>(tokens.size()), {directory / "adapter"});
  const auto V = static_cast<size_t>(model.plan().model.vocab_size);
  compare(model, tokens, {1}, truth, V);
  compare(model, tokens, {4, 1}, truth, V);
  compare(model, tokens, {11}, truth, V);
}

INSTANTIATE_TEST_SUITE_P(golden, EveryAdapter,
                         ::testing::Values("lora", "lora_tied_head", "lora_save_head", "lora_phi3", "lora_gpt2",
                                           "lora_gemma2"),
                         [](const auto& test) { return std::string(test.param); });

TEST(StackedAdapters, add_up_as_in_peft) {
  const Json truth = generation()["stacked"];
  const Tokens tokens = truth["tokens"];
  const fs::path base = golden_directory("lora"), first = base / "adapter_final";
  const fs::path second = golden_directory("generation") / "second_adapter";
  const std::pair<const char*, std::vector<fs::path>> cases[] = {
      {"first", {first}}, {"second", {second}}, {"both", {first, second}}, {"both", {second, first}}};
  for (const auto& [name, adapters] : cases) {
    SCOPED_TRACE(name);
    std::vector<float> logits;
    for (const Json& row : truth[name])
      for (const Json& value : row) logits.push_back(value);
    Model model(base, static_cast<int64_t>(tokens.size()), adapters);
    const auto V = static_cast<size_t>(model.plan().model.vocab_size);
    compare(model, tokens, {1}, logits, V);
    compare(model, tokens, {7, 4}, logits, V);
  }
}

TEST(Bf16, is_near_fp32) {
  const fs::path directory = golden_directory("untied");
  const Json batch = first_batch(read_json(directory / "batch.json"));
  const Tokens tokens = batch["tokens"][0];
  Model whole(directory, 64), half(directory, 64, {}, 64, true);
  for (Model* model : {&whole, &half}) model->session().feed(std::span(tokens).first(8));
  const double error = relative_error(std::span<const float>(half.logits()), whole.logits());
  EXPECT_LT(error, 0.05);
  EXPECT_GT(error, 1e-5);
}

TEST(Session, keeps_what_two_sequences_have_in_common) {
  Model model(golden_directory("untied"), 32);
  Session& session = model.session();
  const Tokens one = {1, 2, 3, 4, 5, 6}, two = {1, 2, 3, 9, 8};
  session.begin(32);
  session.feed(one);
  EXPECT_EQ(session.rewind_to_common(two), 3);
  session.feed(std::span(two).subspan(3));
  const auto reused = model.logits();
  session.begin(32);
  EXPECT_EQ(session.rewind_to_common(two), 0);
  session.feed(two);
  EXPECT_LE(relative_error(std::span<const float>(reused), model.logits()), 1e-6);
  EXPECT_EQ(session.rewind_to_common(two), 4);  // the last one is fed for its logits
  EXPECT_EQ(session.length(), 4);
}

TEST(Session, refuses_more_tokens_than_planned) {
  Model model(golden_directory("untied"), 5);
  model.session().begin(5);
  const Tokens tokens = {1, 2, 3};
  model.session().feed(tokens);
  EXPECT_THROW(model.session().feed(tokens), Error);
}

TEST(Plan, a_tokens_small_ops_are_not_shared_by_threads) {
  const Model model(golden_directory("untied"), 32);
  int64_t ops = 0;
  const Program& program = model.plan().program;
  const auto last = static_cast<int32_t>(program.generation.steps.size()) - 1;
  for_each_op(program.region(Section::generation_step, last), [&](const Op& op, const Region&) {
    EXPECT_EQ(op.cut.threads, 1) << name_of(op.kind);
    ++ops;
  });
  EXPECT_GT(ops, 10);
}

TEST(AdapterStack, refuses_adapters_of_other_models_by_name) {
  const fs::path base = golden_directory("untied");
  for (const char* other : {"lora_phi3", "lora_gpt2", "lora_gemma2"})
    EXPECT_THROW(Model(base, 8, {golden_directory(other) / "adapter"}), Error) << other;
  const fs::path saved = golden_directory("lora_save_head") / "adapter";
  EXPECT_THROW(AdapterStack({saved, saved}), Error);
}

}  // namespace

}  // namespace snug::testing
