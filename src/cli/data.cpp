// snug data: what of each row is learned?

#include "data/preview.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <span>

#include "ask/arguments.h"
#include "ask/target_flags.h"
#include "base/error.h"
#include "cli/command_table.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "model/catalogue.h"
#include "model/hub_cache.h"
#include "plan/plan.h"
#include "recipe/keys.h"
#include "train/prepare_data.h"

namespace snug::cli {

namespace {

constexpr int64_t kMostRows = 1000;

// FILE MODEL, or a recipe that names both.
Arguments data_arguments(std::span<char* const> words) {
  Options options = parse_options(words, own_flags("data"), takes_of_key);
  std::string file;
  if (options.positional.size() > 1) {
    file = options.positional.front();
    options.positional.erase(options.positional.begin());
  }
  Terminal terminal;
  Arguments arguments = read_arguments(std::move(options), terminal);
  if (!file.empty()) arguments.recipe.data = file;
  if (arguments.recipe.model.empty() || arguments.recipe.data.empty())
    throw UsageError("which rows, and whose tokens? snug data FILE MODEL");
  return arguments;
}

int64_t rows_asked(const Arguments& arguments) {
  const std::string word = arguments.value("rows", "3");
  int64_t rows = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), rows);
  if (problem != std::errc() || end != word.data() + word.size() || rows < 1 || rows > kMostRows)
    throw UsageError(fmt::format("--rows takes a number from 1 to {}, not '{}'", kMostRows, word));
  return rows;
}

// Neighbouring tokens that are all learned, or all not.
struct Stretch {
  bool learned = false;
  std::string text;
};

// A token may be part of a character, or begin with a space that its neighbour decides on: texts are differences of whole
// ones.
std::vector<Stretch> stretches_of(const PreviewedRow& row, const Tokenizer& tokenizer) {
  std::vector<Stretch> stretches;
  const std::span<const int32_t> tokens(row.tokens);
  std::string before;
  for (size_t begin = 0; begin < tokens.size();) {
    size_t end = begin;
    while (end < tokens.size() && row.learned[end] == row.learned[begin]) ++end;
    const std::string whole = tokenizer.decode(tokens.first(end));
    const bool grows = whole.starts_with(before);
    stretches.push_back(
        {row.learned[begin], grows ? whole.substr(before.size()) : tokenizer.decode(tokens.subspan(begin, end - begin))});
    before = whole;
    begin = end;
  }
  return stretches;
}

// Rows come from anywhere: what would steer a terminal is shown as a mark.
std::string printable(std::string text) {
  for (char& c : text)
    if ((c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == '\x7f') c = '?';
  return text;
}

std::string text_of(const PreviewedRow& row, const Tokenizer& tokenizer, const TextStyle& style) {
  constexpr const char *kGreen = "\x1b[32m", *kDim = "\x1b[2m", *kPlain = "\x1b[0m";
  std::string text;
  for (const Stretch& stretch : stretches_of(row, tokenizer)) {
    const char* const open = style.colour ? (stretch.learned ? kGreen : kDim) : stretch.learned ? "⟦" : "";
    const char* const close = style.colour ? kPlain : stretch.learned ? "⟧" : "";
    text += open + printable(stretch.text) + close;
  }
  return text + "\n";
}

std::string ids_of(const PreviewedRow& row, const Tokenizer& tokenizer) {
  std::string text;
  for (size_t i = 0; i < row.tokens.size(); ++i)
    text += fmt::format("{:>6} {:>7} {} {}\n", i, row.tokens[i], row.learned[i] ? "learned" : "       ",
                        printable(std::string(tokenizer.token_of(row.tokens[i]))));
  return text;
}

// "train.jsonl:1: 84 tokens, 57 learned".
std::string title_of(const PreviewedRow& row) {
  const auto learned = std::ranges::count(row.learned, true);
  std::string text = fmt::format("{}: {} tokens, {} learned", row.where, row.length, learned);
  if (row.dropped) return text + "; max_length leaves nothing to learn: training is without it\n";
  if (static_cast<int64_t>(row.tokens.size()) < row.length) text += fmt::format(" of the first {}", row.tokens.size());
  return text + "\n";
}

}  // namespace

int data_command(std::span<char* const> words) {
  Arguments arguments = data_arguments(words);
  const int64_t rows = rows_asked(arguments);
  validate(arguments.recipe);
  arguments.recipe.model = local_checkpoint(arguments.recipe.model, "showing tokens").string();
  const Plan plan = make_plan(resolve_model(arguments.recipe.model), arguments.recipe, target_for(arguments));
  DatasetRequest request = dataset_request(plan);
  request.model = arguments.recipe.model;
  const Tokenizer tokenizer = Tokenizer::load(arguments.recipe.model);
  const Preview shown = preview(request, tokenizer, rows);
  const TextStyle style = style_of(stdout);
  fmt::print("{} rows; learned is what is {}\n", name_of(shown.format), style.colour ? "green" : "between ⟦ and ⟧");
  for (const PreviewedRow& row : shown.rows)
    fmt::print("\n{}{}", title_of(row), arguments.has("ids") ? ids_of(row, tokenizer) : text_of(row, tokenizer, style));
  return 0;
}

}  // namespace snug::cli
