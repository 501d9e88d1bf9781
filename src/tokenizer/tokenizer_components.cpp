#include "tokenizer/tokenizer_components.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace snug {
namespace {

// GPT-2's expression, which ByteLevel applies when `use_regex` is true.
constexpr std::string_view kByteLevelWords = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const std::string kByteLevelModels = "byte-level BPE alone (GPT-2, SmolLM2, Llama-3, Qwen)";

[[noreturn]] void refuse_sentencepiece(const JsonNode& node) {
  node.at("type").refuse(quote(node.type()) + " belongs to SentencePiece-style tokenizers, which are not supported",
                         "choose a model with byte-level BPE: GPT-2, SmolLM2, Llama-3, Qwen");
}

void read_normalizer(const JsonNode& node, TokenizerParts& parts) {
  const std::string_view type = node.type();
  if (type == "NFC") {
    node.allow({"type"});
    parts.nfc = true;
  } else if (type == "Sequence") {
    node.allow({"type", "normalizers"});
    for (const JsonNode& inner : node.at("normalizers").array()) read_normalizer(inner, parts);
  } else if (type == "Prepend" || type == "Replace") {
    refuse_sentencepiece(node);
  } else {
    node.refuse_type("NFC");
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

Regex read_pattern(const JsonNode& node) {
  node.allow({"Regex", "String"});
  if (const auto expression = node.find("Regex")) return {expression->string(), expression->where()};
  const JsonNode text = node.at("String");
  return Regex::literal(text.string(), text.where());
}

// Pre-tokenizers in the order in which they are applied; the byte level must come last.
class PretokenizerReader {
 public:
  explicit PretokenizerReader(Pretokenizer& pretokenizer) : pretokenizer_(pretokenizer) {}

  void read(const JsonNode& node) {
    const std::string_view type = node.type();
    if (type == "Sequence") {
      node.allow({"type", "pretokenizers"});
      for (const JsonNode& inner : node.at("pretokenizers").array()) read(inner);
      return;
    }
    if (byte_level_) node.at("type").refuse("a step after ByteLevel is not supported");
    if (type == "ByteLevel") {
      read_byte_level(node);
    } else if (type == "Split") {
      node.allow({"type", "pattern", "behavior", "invert"});
      pretokenizer_.add_split(read_pattern(node.at("pattern")), read_behavior(node.at("behavior")),
                              node.boolean_or("invert", false));
    } else if (type == "Digits") {
      node.allow({"type", "individual_digits"});
      const bool individual = node.boolean_or("individual_digits", false);
      pretokenizer_.add_split(Regex(individual ? "\\p{N}" : "\\p{N}+", node.where()), SplitBehavior::isolated, false);
    } else if (type == "Metaspace") {
      refuse_sentencepiece(node);
    } else {
      node.refuse_type("ByteLevel, Split, Digits and Sequence");
    }
  }

  bool byte_level() const { return byte_level_; }

 private:
  void read_byte_level(const JsonNode& node) {
    node.allow({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    byte_level_ = true;
    if (node.boolean_or("add_prefix_space", true)) pretokenizer_.add_prefix_space();
    if (!node.boolean_or("use_regex", true)) return;
    pretokenizer_.add_split(Regex(kByteLevelWords, node.where()), SplitBehavior::isolated, false);
  }

  Pretokenizer& pretokenizer_;
  bool byte_level_ = false;
};

// The ids of the special tokens of a template, before and after the text.
void read_template(const JsonNode& node, TokenizerParts& parts) {
  node.allow({"type", "single", "pair", "special_tokens"});
  const JsonNode tokens = node.at("special_tokens");
  std::vector<int32_t> before;
  std::vector<int32_t> after;
  int64_t texts = 0;
  for (const JsonNode& piece : node.at("single").array()) {
    piece.allow({"SpecialToken", "Sequence"});
    if (const auto sequence = piece.find("Sequence")) {
      if (sequence->at("id").string() != "A") sequence->at("id").refuse("should be \"A\" in a template for one text");
      ++texts;
      continue;
    }
    const JsonNode special = piece.at("SpecialToken").at("id");
    const auto found = tokens.find(special.string());
    if (!found) special.refuse("is not among special_tokens");
    for (const JsonNode& id : found->at("ids").array()) {
      const int64_t value = id.integer();
      if (value < 0 || value >= Vocabulary::kMaxIds) id.refuse("is out of range: " + std::to_string(value));
      (texts == 0 ? before : after).push_back(static_cast<int32_t>(value));
    }
  }
  if (texts != 1) node.at("single").refuse("should name the text (Sequence A) once");
  parts.prefix.insert(parts.prefix.begin(), before.begin(), before.end());
  parts.suffix.insert(parts.suffix.end(), after.begin(), after.end());
}

void read_post_processor(const JsonNode& node, TokenizerParts& parts) {
  const std::string_view type = node.type();
  if (type == "ByteLevel") {  // moves offsets, which nobody here asks for
    node.allow({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  } else if (type == "TemplateProcessing") {
    read_template(node, parts);
  } else if (type == "Sequence") {
    node.allow({"type", "processors"});
    for (const JsonNode& inner : node.at("processors").array()) read_post_processor(inner, parts);
  } else {
    node.refuse_type("ByteLevel, TemplateProcessing and Sequence");
  }
}

void read_decoder(const JsonNode& node) {
  const std::string_view type = node.type();
  if (type == "Sequence") {
    node.allow({"type", "decoders"});
    const auto inner = node.at("decoders").array();
    if (inner.size() != 1) node.at("decoders").refuse("more than one decoder is not supported", "snug knows ByteLevel");
    return read_decoder(inner.front());
  }
  if (type != "ByteLevel") node.refuse_type("ByteLevel");
  node.allow({"type", "add_prefix_space", "trim_offsets", "use_regex"});
}

}  // namespace

void read_components(const JsonNode& root, TokenizerParts& parts) {
  if (const auto normalizer = root.find("normalizer")) read_normalizer(*normalizer, parts);
  const auto pretokenizer = root.find("pre_tokenizer");
  if (!pretokenizer) root.refuse("pre_tokenizer is missing or null", "snug knows " + kByteLevelModels);
  PretokenizerReader reader(parts.pretokenizer);
  reader.read(*pretokenizer);
  if (!reader.byte_level()) pretokenizer->refuse("has no ByteLevel step", "snug knows " + kByteLevelModels);
  if (const auto processor = root.find("post_processor")) read_post_processor(*processor, parts);
  read_decoder(root.at("decoder"));
}

}  // namespace snug
