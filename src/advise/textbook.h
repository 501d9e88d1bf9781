#pragma once
// The rules of thumb that articles on GPU memory print (weights + optimizer + gradients + activations, up to 30 % overhead),
// computed as they print them, beside what a Plan says exactly. It knows no Program but through its Plan. Sources: the five
// founding documents, numbered 000 to 004 in docs/textbook.md; most of it stands in 001 and 004.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace snug {

// What the rules multiply. Sizes of an element are in bits, because 4-bit weights take half a byte.
struct TextbookQuestion {
  int64_t parameters = 0;          // of the model: 7'000'000'000 for "7B"
  std::optional<int64_t> trained;  // parameters with gradients and states; none: unknown
  int64_t weight_bits = 32;
  int64_t gradient_bits = 32;
  int64_t state_bits = 64;                   // all states that the optimizer keeps of one parameter
  int64_t value_bits = 32;                   // an activation
  int64_t batch = 1;                         // sequences
  int64_t seq_len = 1024;                    // tokens
  int64_t hidden = 0;                        // C; 0: unknown
  int64_t layers = 0;                        // L; 0: unknown
  int64_t heads = 0;                         // H; 0: unknown
  std::optional<int64_t> given_activations;  // bytes taken instead of the rule's
  // Of several processes, one's share of what this stage of ZeRO shares out (Rajbhandari et al., 2020, figure 1).
  Parallel parallel;
};

// The question that a recipe asks: dtypes, batch and length from its keys; `seq_len` 0 stays 1024.
TextbookQuestion textbook_question(const Recipe& recipe, int64_t parameters);
// The same for a planned model: its own counts and sizes.
TextbookQuestion textbook_question(const Plan& plan);

enum class TextbookRow : uint8_t { weights, optimizer, gradients, activations, overhead };
constexpr int kTextbookRows = 5;
const char* name_of(TextbookRow row);

// Bytes by the rules; none where the question leaves something unknown.
struct TextbookAnswer {
  using Bytes = std::optional<int64_t>;
  std::array<Bytes, kTextbookRows> rows;                            // overhead: 30 % of the total, an upper bound
  std::array<std::string, kTextbookRows> rules;                     // "7 B x 2 bytes"; what is missing where bytes are
  Bytes static_total;                                               // weights + gradients + optimizer
  Bytes total;                                                      // … + activations
  Bytes per_token_and_layer, per_sequence_and_layer, per_sequence;  // activations
  Bytes scores;  // attention scores of one sequence in one layer, where they are kept

  Bytes of(TextbookRow row) const { return rows[static_cast<size_t>(row)]; }
};

// Throws Error where a product does not fit in 63 bits.
TextbookAnswer by_the_textbook(const TextbookQuestion& question);

// snug's figure for a row and one line on why it differs. The rows of a plan sum to its peak, but for paged states, which
// lie on disk and count as the optimizer's.
struct ExactRow {
  int64_t bytes = 0;
  std::string why;
};
std::array<ExactRow, kTextbookRows> beside_the_textbook(const Plan& plan, const TextbookQuestion& question);

// Where the documents contradict one another, or themselves, on what this question asks.
std::vector<std::string> contradictions(const TextbookQuestion& question);

// "7B", "1.24B", "20M", "350k" or "7000000000"; none if `text` is no count. At most 10^15.
std::optional<int64_t> parse_count(std::string_view text);

// As the documents print: three digits of decimal GB ("0.268"), and of the largest binary unit that is not below 1 ("16
// MiB").
std::string decimal_gigabytes(int64_t bytes);
std::string binary_unit(int64_t bytes);

}  // namespace snug
