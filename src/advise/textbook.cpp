#include "advise/textbook.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "program/compile.h"

namespace snug {

namespace {

constexpr int64_t kBitsInByte = 8;
constexpr int64_t kOverheadPercent = 30;

int64_t bytes_by(int64_t count, int64_t bits) {
  return checked_add(checked_mul(count, bits), kBitsInByte - 1) / kBitsInByte;
}

std::string bytes_each(int64_t bits) { return fmt::format("{:.3g} bytes", static_cast<double>(bits) / kBitsInByte); }

std::string count_text(int64_t count) {
  if (count >= 1'000'000'000) return fmt::format("{:.3g} B", static_cast<double>(count) / 1e9);
  if (count >= 1'000'000) return fmt::format("{:.3g} M", static_cast<double>(count) / 1e6);
  return std::to_string(count);
}

int64_t state_bits(const Recipe& recipe) {
  switch (recipe.optim) {
    case Optimizer::adamw: return 64;
    case Optimizer::adamw_bf16: return 32;
    case Optimizer::adamw_8bit: return 16;
    case Optimizer::lion: return 32;
    case Optimizer::lion_8bit: return 8;
    case Optimizer::sgd: return recipe.momentum > 0.0 ? 32 : 0;
    case Optimizer::adafactor: return 0;  // a row and a column for each matrix
  }
  return 64;
}

void answer_activations(const TextbookQuestion& q, TextbookAnswer& answer) {
  const auto row = static_cast<size_t>(TextbookRow::activations);
  if (q.hidden > 0) {
    answer.per_token_and_layer = bytes_by(q.hidden, q.value_bits);
    answer.per_sequence_and_layer = checked_mul(*answer.per_token_and_layer, q.seq_len);
    if (q.layers > 0) {
      answer.per_sequence = checked_mul(*answer.per_sequence_and_layer, q.layers);
      answer.rows[row] = checked_mul(*answer.per_sequence, q.batch);
      answer.rules[row] = fmt::format("batch {} x seq {} x hidden {} x {} layers x {}", q.batch, q.seq_len, q.hidden,
                                      q.layers, bytes_each(q.value_bits));
    }
  }
  if (!answer.rows[row]) answer.rules[row] = "unknown: give --hidden and --layers";
  if (q.given_activations) {
    answer.rows[row] = q.given_activations;
    answer.rules[row] = "as given";
  }
  if (q.heads > 0) answer.scores = bytes_by(checked_mul(q.heads, checked_mul(q.seq_len, q.seq_len)), q.value_bits);
}

void add_up(TextbookAnswer& answer) {
  const auto weights = answer.of(TextbookRow::weights), optimizer = answer.of(TextbookRow::optimizer),
             gradients = answer.of(TextbookRow::gradients), activations = answer.of(TextbookRow::activations);
  const auto row = static_cast<size_t>(TextbookRow::overhead);
  answer.rules[row] = "unknown, as the total is";
  if (!optimizer || !gradients) return;
  answer.static_total = checked_add(checked_add(*weights, *optimizer), *gradients);
  if (!activations) return;
  answer.total = checked_add(*answer.static_total, *activations);
  answer.rows[row] = checked_mul(*answer.total, kOverheadPercent) / 100;
  answer.rules[row] = fmt::format("up to {} % of the total", kOverheadPercent);
}

}  // namespace

const char* name_of(TextbookRow row) {
  constexpr const char* kNames[kTextbookRows] = {"weights", "optimizer", "gradients", "activations", "overhead"};
  return kNames[static_cast<int>(row)];
}

TextbookQuestion textbook_question(const Recipe& recipe, int64_t parameters) {
  const bool half = recipe.bf16 || recipe.fp16;
  TextbookQuestion q{.parameters = parameters};
  q.value_bits = q.gradient_bits = q.weight_bits = half ? 16 : 32;
  if (recipe.quantize.in_8bit) q.weight_bits = 8;
  if (recipe.quantize.in_4bit) q.weight_bits = 4;
  q.state_bits = state_bits(recipe) + (half && recipe.master_weights.value_or(false) ? 32 : 0);
  q.parallel = recipe.parallel;
  if (recipe.method == Method::full) q.trained = parameters;
  q.batch = recipe.batch;
  if (recipe.seq_len > 0) q.seq_len = recipe.seq_len;
  return q;
}

TextbookQuestion textbook_question(const Plan& plan) {
  TextbookQuestion q = textbook_question(plan.recipe, plan.program.total_parameters());
  q.trained = plan.program.trainable_parameters();
  q.seq_len = plan.program.seq_len;
  q.hidden = plan.model.hidden_size;
  q.layers = plan.model.layers;
  q.heads = plan.model.heads;
  return q;
}

TextbookAnswer by_the_textbook(const TextbookQuestion& q) {
  TextbookAnswer answer;
  // `stage`: of ZeRO, the first that shares it out.
  const auto fill = [&](TextbookRow row, std::optional<int64_t> count, int64_t bits, int64_t stage) {
    const auto at = static_cast<size_t>(row);
    const int64_t ranks = q.parallel.zero_stage >= stage ? q.parallel.ranks : 1;
    if (count) answer.rows[at] = (bytes_by(*count, bits) + ranks - 1) / ranks;
    answer.rules[at] = count ? count_text(*count) + " x " + bytes_each(bits) : "unknown: give --trained";
    if (count && ranks > 1) answer.rules[at] += fmt::format(" / {} processes", ranks);
  };
  fill(TextbookRow::weights, q.parameters, q.weight_bits, 3);
  fill(TextbookRow::optimizer, q.trained, q.state_bits, 1);
  fill(TextbookRow::gradients, q.trained, q.gradient_bits, 2);
  answer_activations(q, answer);
  add_up(answer);
  return answer;
}

std::vector<std::string> contradictions(const TextbookQuestion& q) {
  std::vector<std::string> notes;
  if (q.trained == q.parameters) {
    notes.emplace_back(
        "003 adds 14 + 56 + 20 = 90 GB for 7 B parameters and leaves the gradients (14 GB) out; with them 104");
    notes.emplace_back(
        "003 writes 14 GB x 2 x 4 bytes for the fp32 states, which is 112; its 56 GB is 7 B x 8 bytes, as in 004");
    notes.emplace_back("004 calls 56 GB of states \"FP32 master\"; they are the two moments, a master copy is 28 GB more");
  }
  if (q.state_bits == 16)
    notes.emplace_back(
        "004 gives 8-bit Adam 1 byte a parameter and 75 % less than 8; two states are 2 bytes, which is 75 % less");
  if (q.weight_bits == 4)
    notes.emplace_back("7 B in 4 bits: 3.5 GB in 001 and 004, 4 to 5 GB in 003, which counts scales and 16-bit layers too");
  notes.emplace_back(
      "004's rule gives 512 MiB a sequence and 4 GiB for a batch of 8, its total says 20+ GB; 003's gives 0.268 GB, its "
      "total "
      "takes 20");
  notes.emplace_back("004 prints binary units for activations and decimal ones for the rest, both as MB and GB");
  return notes;
}

std::optional<int64_t> parse_count(std::string_view text) {
  constexpr int64_t kMostCount = 1'000'000'000'000'000;
  constexpr size_t kMostDigits = 16;
  if (text.empty()) return std::nullopt;
  int64_t unit = 1;
  switch (std::tolower(static_cast<unsigned char>(text.back()))) {
    case 't': unit = 1'000'000'000'000; break;
    case 'b': unit = 1'000'000'000; break;
    case 'm': unit = 1'000'000; break;
    case 'k': unit = 1'000; break;
    default: break;
  }
  if (unit > 1) text.remove_suffix(1);
  if (text.empty() || text.size() > kMostDigits) return std::nullopt;
  int64_t digits = 0, divisor = 0;  // divisor 0: no point yet
  for (const char c : text) {
    if (c == '.' && divisor == 0 && unit > 1) {
      divisor = 1;
      continue;
    }
    if (c < '0' || c > '9') return std::nullopt;
    digits = digits * 10 + (c - '0');
    divisor *= 10;
  }
  // 10^16 digits times 10^12 would wrap; a count that large is refused anyway.
  const double about =
      static_cast<double>(digits) * static_cast<double>(unit) / static_cast<double>(std::max<int64_t>(1, divisor));
  if (about < 1 || about > static_cast<double>(kMostCount)) return std::nullopt;
  __extension__ using Wide = __int128;
  return static_cast<int64_t>(static_cast<Wide>(digits) * unit / std::max<int64_t>(1, divisor));
}

std::string decimal_gigabytes(int64_t bytes) {
  const double value = static_cast<double>(bytes) / 1e9;
  if (value >= 999.5) return fmt::format("{:.0f}", value);
  if (value != 0 && value < 0.001) return fmt::format("{:.6f}", value);
  return fmt::format("{:.3g}", value);
}

std::string binary_unit(int64_t bytes) {
  constexpr auto kNames = std::to_array<std::string_view>({"B", "KiB", "MiB", "GiB", "TiB", "PiB"});
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < kNames.size(); ++unit) value /= 1024;
  return fmt::format("{:.3g} {}", value, kNames[unit]);
}

}  // namespace snug
