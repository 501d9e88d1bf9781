#include "cli/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>

#include "base/version.h"
#include "cli/command_table.h"
#include "cli/flag_words.h"
#include "cli/help_layout.h"
#include "cli/help_page.h"
#include "recipe/keys.h"

namespace snug::cli {

namespace {

constexpr std::string_view kExitCodes = "Exit codes: ";  // how that paragraph of the overview begins

// Characters that roff would read as something else, and those that not every terminal has. Long lists may be broken.
struct Spelling {
  std::string_view text, roff;
};
constexpr Spelling kSpellings[] = {{"\\", "\\e"}, {"-", "\\-"},  {"…", "..."}, {"⟦", "[["},
                                   {"⟧", "]]"},   {"|", "|\\:"}, {",", ",\\:"}};

std::string roff(std::string_view text) {
  std::string result = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  while (!text.empty()) {
    const auto special = std::ranges::find_if(kSpellings, [&](const Spelling& one) { return text.starts_with(one.text); });
    const bool plain = special == std::end(kSpellings);
    result += plain ? text.substr(0, 1) : special->roff;
    text.remove_prefix(plain ? 1 : special->text.size());
  }
  return result;
}

bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; }

bool is_placeholder(std::string_view word) {
  for (const char c : word)
    if (std::islower(static_cast<unsigned char>(c)) != 0 || c == '-') return false;
  return std::isupper(static_cast<unsigned char>(word.front())) != 0;
}

// A line to type: words as they are in bold, what they stand for in italics.
std::string typed(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    size_t end = 0;
    while (end < text.size() && is_of_word(text[end])) ++end;
    if (end == 0) {
      size_t between = 1;
      while (between < text.size() && !is_of_word(text[between])) ++between;
      result += roff(text.substr(0, between));
      text.remove_prefix(between);
      continue;
    }
    const std::string_view word = text.substr(0, end);
    result += fmt::format("\\f{}{}\\fR", is_placeholder(word) ? 'I' : 'B', roff(word));
    text.remove_prefix(end);
  }
  return result;
}

std::string item(const std::string& head, std::string_view body) { return fmt::format(".TP\n{}\n{}\n", head, roff(body)); }

std::string rendered(const HelpPart& part) {
  switch (part.kind) {
    case HelpPart::Kind::usage: return fmt::format(".PP\n{}\n", typed(part.text));
    case HelpPart::Kind::prose: return fmt::format(".PP\n{}\n", roff(part.text));
    case HelpPart::Kind::row: return item(typed(part.text), part.help);
    case HelpPart::Kind::example: return fmt::format(".PP\n.EX\n{}\n.EE\n", roff(part.text));
  }
  return "";
}

std::string rendered(std::string_view topic) {
  std::string text;
  for (const HelpPart& part : help_parts(help_page(topic))) text += rendered(part);
  return text;
}

std::string description() {
  std::string text = ".SH DESCRIPTION\n", exit_codes;
  for (const HelpPart& part : help_parts(help_page(""))) {
    const size_t codes = part.text.find(kExitCodes);
    if (part.kind != HelpPart::Kind::prose || codes == std::string::npos) {
      text += rendered(part);
      continue;
    }
    text += fmt::format(".PP\n{}\n", roff(part.text.substr(0, codes)));
    exit_codes = part.text.substr(codes + kExitCodes.size());
  }
  return fmt::format("{}.SH EXIT STATUS\n{}\n", text, roff(exit_codes));
}

std::string commands_text() {
  std::string text = ".SH COMMANDS\n";
  for (const Command& command : commands())
    if (command.name != "help") text += fmt::format(".SS {}\n{}", command.name, rendered(command.name));
  return text + ".SH RUNS ON PYTORCH\n" + rendered("pytorch");
}

std::string keys_text() {
  std::string text =
      ".SH KEYS\nKeys of a recipe, with their defaults: in YAML as written here, on the command line as flags with "
      "dashes.\n";
  for (const Key& key : recipe_keys()) {
    const std::string value = key.default_text();
    std::string body = fmt::format("{} Values: {}.", key.help, key.values);
    if (!key.aliases.empty()) body += fmt::format(" Also: {}.", fmt::join(key.aliases, ", "));
    const std::string head = fmt::format("\\fB{}\\fR{}", roff(key.name), value.empty() ? "" : " = " + roff(value));
    text += item(head, body);
  }
  return text;
}

constexpr std::string_view kEnd = R"(.SH FILES
.TP
\fI~/.cache/snug\fR
What snug probe measured, and receipts of finished runs, which make times of plans truer.
.TP
\fI~/.cache/huggingface/hub\fR
Models and data sets that are there already are found by their names.
.TP
\fImetrics.jsonl\fR, \fIcheckpoint\-N\fR
In the output directory: a line for each step, and what a run goes on from.
.SH ENVIRONMENT
.TP
\fBXDG_CACHE_HOME\fR
Where caches are, instead of \fI~/.cache\fR.
.TP
\fBHF_HOME\fR, \fBHF_HUB_CACHE\fR
Where the cache of Hugging Face is.
.TP
\fBNO_COLOR\fR
Text without colour, on a terminal too.
)";

}  // namespace

std::string man_page() {
  std::string text = fmt::format(".TH SNUG 1 \"\" \"snug {}\" \"User Commands\"\n.nh\n.ad l\n", kVersion);
  text += ".SH NAME\nsnug \\- fine\\-tunes language models in the memory you have\n";
  text += ".SH SYNOPSIS\n\\fBsnug\\fR \\fICOMMAND\\fR ...\n";
  return text + description() + commands_text() + keys_text() + std::string(kEnd);
}

}  // namespace snug::cli
