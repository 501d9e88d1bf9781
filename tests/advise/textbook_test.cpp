// Every worked figure of the founding documents, to the digits that they print (the table in docs/textbook.md).

#include "advise/textbook.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "model/catalogue.h"

namespace snug::testing {

namespace {

constexpr int64_t k4B = 4'000'000'000, k7B = 7'000'000'000;

Recipe recipe_of(Method method, bool bf16, bool fp16, Optimizer optimizer) {
  Recipe recipe;
  recipe.method = method;
  recipe.bf16 = bf16;
  recipe.fp16 = fp16;
  recipe.optim = optimizer;
  return recipe;
}

std::string gigabytes(const TextbookAnswer& answer, TextbookRow row) { return decimal_gigabytes(answer.of(row).value()); }

TEST(Textbook, document_001_4B_full_in_bf16_with_2_byte_states) {
  const Recipe recipe = recipe_of(Method::full, true, false, Optimizer::adamw_bf16);
  const TextbookAnswer answer = by_the_textbook(textbook_question(recipe, k4B));
  EXPECT_EQ(gigabytes(answer, TextbookRow::weights), "8");
  EXPECT_EQ(gigabytes(answer, TextbookRow::gradients), "8");
  EXPECT_EQ(gigabytes(answer, TextbookRow::optimizer), "16");
  EXPECT_EQ(decimal_gigabytes(answer.static_total.value()), "32");
}

TEST(Textbook, document_001_4B_LoRA_with_20M_trained) {
  TextbookQuestion q = textbook_question(recipe_of(Method::lora, true, false, Optimizer::adamw_bf16), k4B);
  EXPECT_FALSE(by_the_textbook(q).static_total.has_value());  // it does not say how many
  q.trained = parse_count("20M");
  const TextbookAnswer answer = by_the_textbook(q);
  EXPECT_EQ(gigabytes(answer, TextbookRow::weights), "8");
  EXPECT_EQ(gigabytes(answer, TextbookRow::gradients), "0.04");
  EXPECT_EQ(gigabytes(answer, TextbookRow::optimizer), "0.08");
  EXPECT_EQ(decimal_gigabytes(answer.static_total.value()), "8.12");
}

TEST(Textbook, documents_001_and_004_7B_weights_in_each_precision) {
  Recipe recipe = recipe_of(Method::lora, false, false, Optimizer::adamw);
  const auto weights = [&] { return gigabytes(by_the_textbook(textbook_question(recipe, k7B)), TextbookRow::weights); };
  EXPECT_EQ(weights(), "28");
  recipe.bf16 = true;
  EXPECT_EQ(weights(), "14");
  recipe.bf16 = false;
  recipe.fp16 = true;
  EXPECT_EQ(weights(), "14");
  recipe.quantize.in_8bit = true;
  EXPECT_EQ(weights(), "7");
  recipe.quantize = {.in_4bit = true};
  EXPECT_EQ(weights(), "3.5");
}

TEST(Textbook, documents_003_and_004_7B_states_and_gradients) {
  const auto answer_of = [](bool fp16, Optimizer optimizer) {
    return by_the_textbook(textbook_question(recipe_of(Method::full, false, fp16, optimizer), k7B));
  };
  EXPECT_EQ(gigabytes(answer_of(true, Optimizer::adamw), TextbookRow::optimizer), "56");
  EXPECT_EQ(gigabytes(answer_of(true, Optimizer::adamw_bf16), TextbookRow::optimizer), "28");
  EXPECT_EQ(gigabytes(answer_of(false, Optimizer::adamw), TextbookRow::optimizer), "56");
  EXPECT_EQ(gigabytes(answer_of(false, Optimizer::adamw), TextbookRow::gradients), "28");
  EXPECT_EQ(gigabytes(answer_of(true, Optimizer::adamw), TextbookRow::gradients), "14");
}

TEST(Textbook, document_003_activations_of_Mistral_7B) {
  Recipe recipe = recipe_of(Method::full, false, true, Optimizer::adamw);
  recipe.seq_len = 1024;
  TextbookQuestion q = textbook_question(recipe, k7B);
  const ModelSpec mistral = *find_model("mistralai/Mistral-7B-v0.1");
  q.hidden = mistral.hidden_size;
  q.layers = mistral.layers;
  EXPECT_EQ(gigabytes(by_the_textbook(q), TextbookRow::activations), "0.268");
}

TEST(Textbook, document_004_activations_and_scores_of_7B) {
  Recipe recipe = recipe_of(Method::full, false, true, Optimizer::adamw);
  recipe.seq_len = 2048;
  recipe.batch = 8;
  TextbookQuestion q = textbook_question(recipe, k7B);
  q.hidden = 4096;
  q.layers = 32;
  q.heads = 32;
  const TextbookAnswer answer = by_the_textbook(q);
  EXPECT_EQ(binary_unit(answer.per_token_and_layer.value()), "8 KiB");
  EXPECT_EQ(binary_unit(answer.per_sequence_and_layer.value()), "16 MiB");
  EXPECT_EQ(binary_unit(answer.per_sequence.value()), "512 MiB");
  EXPECT_EQ(binary_unit(answer.of(TextbookRow::activations).value()), "4 GiB");
  EXPECT_EQ(binary_unit(answer.scores.value()), "256 MiB");
}

TEST(Textbook, document_004_totals_of_7B) {
  const auto question = [](bool fp16, Optimizer optimizer) {
    return textbook_question(recipe_of(Method::full, false, fp16, optimizer), k7B);
  };
  EXPECT_EQ(decimal_gigabytes(by_the_textbook(question(false, Optimizer::adamw)).static_total.value()), "112");
  TextbookQuestion mixed = question(true, Optimizer::adamw_bf16);
  EXPECT_EQ(decimal_gigabytes(by_the_textbook(mixed).static_total.value()), "56");
  mixed.given_activations = 20'000'000'000;
  const TextbookAnswer answer = by_the_textbook(mixed);
  EXPECT_EQ(decimal_gigabytes(answer.total.value()), "76");
  EXPECT_EQ(answer.of(TextbookRow::overhead), 22'800'000'000);  // up to 30 %
}

TEST(Textbook, it_says_where_the_documents_contradict_one_another) {
  const auto notes = [](const TextbookQuestion& q) {
    const std::vector<std::string> list = contradictions(q);
    return std::accumulate(list.begin(), list.end(), std::string());
  };
  TextbookQuestion full = textbook_question(recipe_of(Method::full, false, true, Optimizer::adamw), k7B);
  EXPECT_NE(notes(full).find("leaves the gradients (14 GB) out"), std::string::npos);
  TextbookQuestion lora = textbook_question(recipe_of(Method::lora, true, false, Optimizer::adamw_8bit), k7B);
  EXPECT_EQ(notes(lora).find("leaves the gradients"), std::string::npos);
  EXPECT_NE(notes(lora).find("1 byte a parameter"), std::string::npos);
}

TEST(Textbook, counts_are_read_as_people_write_them) {
  EXPECT_EQ(parse_count("7B"), k7B);
  EXPECT_EQ(parse_count("20m"), 20'000'000);
  EXPECT_EQ(parse_count("1.24B"), 1'240'000'000);
  EXPECT_EQ(parse_count("350k"), 350'000);
  EXPECT_EQ(parse_count("7000000000"), k7B);
  for (const char* bad : {"", "B", "-7B", "7BB", "1.5", "7.5.1B", "0", "0B", "7 B", "99999999999999999999", "9999999999999T",
                          "gpt2", "1e9", "."})
    EXPECT_FALSE(parse_count(bad).has_value()) << bad;
}

TEST(Textbook, a_product_beyond_63_bits_is_refused) {
  TextbookQuestion q{.parameters = k7B, .seq_len = int64_t{1} << 40, .hidden = int64_t{1} << 24, .layers = 1 << 20};
  EXPECT_THROW(by_the_textbook(q), Error);
}

TEST(Textbook, the_plans_rows_sum_to_its_peak_and_each_says_why) {
  for (const Method method : {Method::full, Method::lora}) {
    for (const Optimizer optimizer : {Optimizer::adamw, Optimizer::adamw_8bit}) {
      Recipe recipe = recipe_of(method, true, false, optimizer);
      recipe.gradient_checkpointing = method == Method::lora;
      const Target target{.threads = 2, .memory_bytes = int64_t{1} << 36, .runtime_bytes = 1 << 20};
      const Plan plan = make_plan(*find_model("HuggingFaceTB/SmolLM2-135M"), recipe, target);
      int64_t sum = 0;
      for (const ExactRow& row : beside_the_textbook(plan, textbook_question(plan))) {
        sum += row.bytes;
        EXPECT_FALSE(row.why.empty());
        EXPECT_EQ(row.why.find('\n'), std::string::npos);
      }
      EXPECT_EQ(sum, plan.peak_bytes);
    }
  }
}

TEST(Textbook, without_checkpointing_a_block_keeps_many_times_what_the_rule_counts) {
  Recipe recipe = recipe_of(Method::full, true, false, Optimizer::adamw);
  const Target target{.threads = 2, .memory_bytes = int64_t{1} << 40};
  const Plan plan = make_plan(*find_model("mistralai/Mistral-7B-v0.1"), recipe, target);
  const TextbookQuestion q = textbook_question(plan);
  const ExactRow row = beside_the_textbook(plan, q)[static_cast<size_t>(TextbookRow::activations)];
  const int64_t rule = by_the_textbook(q).of(TextbookRow::activations).value();
  EXPECT_GT(row.bytes, 10 * rule);  // "10 to 30 times"
  EXPECT_LT(row.bytes, 30 * rule);
  EXPECT_NE(row.why.find("a block keeps"), std::string::npos);
}

// "ZeRO", figure 1: 7.5 B parameters, 64 devices, mixed-precision Adam (K = 12): 120, 31.4, 16.6, 1.9 GB.
TEST(Textbook, the_table_of_the_zero_paper) {
  Recipe recipe = recipe_of(Method::full, false, true, Optimizer::adamw);
  recipe.master_weights = true;
  const char* const printed[] = {"120.0", "31.4", "16.6", "1.9"};
  for (const int64_t stage : {0, 1, 2, 3}) {
    recipe.parallel = {64, stage};
    const TextbookAnswer answer = by_the_textbook(textbook_question(recipe, 7'500'000'000));
    EXPECT_EQ(fmt::format("{:.1f}", static_cast<double>(answer.static_total.value()) / 1e9), printed[stage]);
  }
}

}  // namespace

}  // namespace snug::testing
