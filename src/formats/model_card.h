#pragma once
// README.md of a result: the front matter that the Hugging Face Hub reads, what was done, and how to use what came out. It
// says what it is told and nothing else.

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace snug {

struct CardEvaluation {
  int64_t step = 0;
  double loss = 0, token_accuracy = 0, exact = 0;
};

struct TrainingCard {
  std::string version;     // of snug
  std::string base_model;  // as the recipe names it
  bool adapter = true;     // otherwise every weight was trained
  std::string directory;   // of the result, as the user named it

  std::vector<std::pair<std::string, std::string>> recipe;  // keys that differ from their defaults
  std::string data;                                         // file names, no directories
  int64_t rows = 0, tokens = 0, sequences = 0, seq_len = 0;
  int64_t trainable_parameters = 0, total_parameters = 0;
  int64_t steps = 0;
  double train_loss = 0;  // mean over the steps of the last process
  std::vector<CardEvaluation> evaluations;
  int64_t planned_peak_bytes = 0, measured_peak_bytes = 0;
};

std::string training_model_card(const TrainingCard& card);

// Of a model into which `adapters` were merged, in this order.
std::string merged_model_card(const std::filesystem::path& base, const std::vector<std::filesystem::path>& adapters);

// True if README.md of this text was written here and not changed by hand since; a missing file has no text.
bool is_own_card(const std::string& text);

}  // namespace snug
