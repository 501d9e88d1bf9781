// Normalizers and pre-tokenizers: what is done to a text before the model.

#include <limits>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/characters.h"
#include "tokenizer/tokenizer_components.h"

namespace snug {
namespace {

// GPT-2's expression, which ByteLevel applies when `use_regex` is true.
constexpr std::string_view kByteLevelWords = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr int kDeepestSequence = 16;  // sequences within sequences

void read_normalizer_step(const JsonNode& node, Normalizer& normalizer, int depth) {
  const std::string_view type = node.type();
  const auto alone = [&](Normalizer::Step step) {
    node.allow({"type"});
    normalizer.add(std::move(step));
  };
  if (type == "Sequence") {
    node.allow({"type", "normalizers"});
    if (depth == kDeepestSequence) node.refuse("nests too deep");
    for (const JsonNode& inner : node.at("normalizers").array()) read_normalizer_step(inner, normalizer, depth + 1);
  } else if (type == "NFC") {
    alone(NormalForm::nfc);
  } else if (type == "NFD") {
    alone(NormalForm::nfd);
  } else if (type == "NFKC") {
    alone(NormalForm::nfkc);
  } else if (type == "NFKD") {
    alone(NormalForm::nfkd);
  } else if (type == "Lowercase") {
    alone(Normalizer::Simple::lowercase);
  } else if (type == "StripAccents") {
    alone(Normalizer::Simple::strip_accents);
  } else if (type == "Nmt") {
    alone(Normalizer::Simple::nmt);
  } else if (type == "ByteLevel") {
    alone(Normalizer::Simple::byte_level);
  } else if (type == "Prepend") {
    node.allow({"type", "prepend"});
    normalizer.add(Normalizer::Prepend{std::string(node.at("prepend").string())});
  } else if (type == "Replace") {
    node.allow({"type", "pattern", "content"});
    normalizer.add(Normalizer::Replace{read_pattern(node.at("pattern")), std::string(node.at("content").string())});
  } else if (type == "Strip") {
    node.allow({"type", "strip_left", "strip_right"});
    normalizer.add(Normalizer::Strip{node.at("strip_left").boolean(), node.at("strip_right").boolean()});
  } else {
    node.refuse_type("NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Nmt, Prepend, Replace, ByteLevel and Sequence");
  }
}

SplitBehavior read_behavior(const JsonNode& node) {
  const std::string_view name = node.string();
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  node.refuse(quote(name) + " is not a known behavior",
              "one of Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous");
}

void read_byte_level(const JsonNode& node, Pretokenizer& to) {
  node.allow({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (node.boolean_or("add_prefix_space", true)) to.add(Pretokenizer::PrefixSpace{});
  if (node.boolean_or("use_regex", true)) {
    to.add(Pretokenizer::Split{Pattern::of_expression(kByteLevelWords, node.where()), SplitBehavior::isolated});
  }
  to.add(Pretokenizer::SpellBytes{});
}

// In the old form `add_prefix_space` alone says whether a mark is put before.
void read_metaspace(const JsonNode& node, Pretokenizer& to) {
  node.allow({"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"});
  PrependScheme scheme = PrependScheme::always;
  const auto given = node.find("prepend_scheme");
  if (given) {
    const std::string_view name = given->string();
    if (name != "first" && name != "always" && name != "never")
      given->refuse(quote(name) + " is not known", "first, always or never");
    scheme = name == "first" ? PrependScheme::first : name == "always" ? PrependScheme::always : PrependScheme::never;
  }
  if (!node.boolean_or("add_prefix_space", true)) {
    if (scheme != PrependScheme::never) {
      // `tokenizers` refuses these files too.
      node.refuse("add_prefix_space is false, but prepend_scheme is not \"never\"", "let them agree");
    }
  }
  to.add(Pretokenizer::Metaspace{std::string(read_character(node, "replacement")), scheme, node.boolean_or("split", true)});
}

void read_step(const JsonNode& node, Pretokenizer& to, int depth) {
  const std::string_view type = node.type();
  const auto split_at = [&](Pattern::Kind kind, SplitBehavior behavior) {
    to.add(Pretokenizer::Split{Pattern(kind), behavior});
  };
  if (type == "Sequence") {
    node.allow({"type", "pretokenizers"});
    if (depth == kDeepestSequence) node.refuse("nests too deep");
    for (const JsonNode& inner : node.at("pretokenizers").array()) read_step(inner, to, depth + 1);
  } else if (type == "ByteLevel") {
    read_byte_level(node, to);
  } else if (type == "Metaspace") {
    read_metaspace(node, to);
  } else if (type == "Split") {
    node.allow({"type", "pattern", "behavior", "invert"});
    to.add(Pretokenizer::Split{read_pattern(node.at("pattern")), read_behavior(node.at("behavior")),
                               node.boolean_or("invert", false)});
  } else if (type == "Digits") {
    node.allow({"type", "individual_digits"});
    const bool individual = node.boolean_or("individual_digits", false);
    split_at(is_number, individual ? SplitBehavior::isolated : SplitBehavior::contiguous);
  } else if (type == "Punctuation") {
    node.allow({"type", "behavior"});
    const auto behavior = node.find("behavior");
    split_at(is_punctuation, behavior ? read_behavior(*behavior) : SplitBehavior::isolated);
  } else if (type == "WhitespaceSplit") {
    node.allow({"type"});
    split_at(is_space, SplitBehavior::removed);
  } else if (type == "Whitespace") {
    node.allow({"type"});
    to.add(Pretokenizer::Split{Pattern(Regex(R"([\w\x{200c}\x{200d}]+|[^\w\s\x{200c}\x{200d}]+)", node.where())),
                               SplitBehavior::removed, true});
  } else if (type == "BertPreTokenizer") {
    node.allow({"type"});
    split_at(is_space, SplitBehavior::removed);
    split_at(is_punctuation, SplitBehavior::isolated);
  } else if (type == "CharDelimiterSplit") {
    node.allow({"type", "delimiter"});
    to.add(Pretokenizer::Split{Pattern(std::string(read_character(node, "delimiter"))), SplitBehavior::removed});
  } else if (type == "FixedLength") {
    node.allow({"type", "length"});
    const auto length = node.find("length");
    const int64_t characters = length ? length->integer() : 5;
    if (characters < 1) length->refuse("should be at least 1");
    to.add(Pretokenizer::FixedLength{characters});
  } else {
    node.refuse_type(
        "ByteLevel, Metaspace, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, BertPreTokenizer, "
        "CharDelimiterSplit, "
        "FixedLength and Sequence");
  }
}

}  // namespace

Pattern read_pattern(const JsonNode& node) {
  node.allow({"Regex", "String"});
  if (const auto expression = node.find("Regex")) return Pattern::of_expression(expression->string(), expression->where());
  const JsonNode text = node.at("String");
  if (text.string().empty()) text.refuse("is empty", "remove this step");
  return Pattern(std::string(text.string()));
}

std::string_view read_character(const JsonNode& node, std::string_view key) {
  const std::string_view text = node.at(key).string();
  if (text.empty() || utf8_length(text[0]) != text.size()) node.at(key).refuse("should be one character");
  return text;
}

void read_normalizer(const JsonNode& node, Normalizer& normalizer) { read_normalizer_step(node, normalizer, 0); }
void read_pretokenizer(const JsonNode& node, Pretokenizer& pretokenizer) { read_step(node, pretokenizer, 0); }

}  // namespace snug
