// Post-processors and decoders: what is done to ids after the model, and to tokens on the way back.

#include <algorithm>
#include <string>
#include <utility>

#include "tokenizer/tokenizer_components.h"
#include "tokenizer/vocabulary.h"

namespace snug {
namespace {

constexpr int kDeepest = 16;  // sequences within sequences

int32_t read_id(const JsonNode& node) {
  const int64_t value = node.integer();
  if (value < 0 || value >= Vocabulary::kMaxIds) node.refuse("is out of range: " + std::to_string(value));
  return static_cast<int32_t>(value);
}

class PostProcessorReader {
 public:
  PostProcessorReader(std::vector<int32_t>& prefix, std::vector<int32_t>& suffix) : prefix_(prefix), suffix_(suffix) {}

  void read(const JsonNode& node, int depth) {
    const std::string_view type = node.type();
    if (type == "ByteLevel") {  // moves offsets, which snug gives untrimmed
      node.allow({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    } else if (type == "TemplateProcessing") {
      read_template(node);
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      node.allow({"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
      once(node);
      prefix_.push_back(read_pair(node.at("cls")));
      suffix_.push_back(read_pair(node.at("sep")));
    } else if (type == "Sequence") {
      node.allow({"type", "processors"});
      if (depth == kDeepest) node.refuse("nests too deep");
      for (const JsonNode& inner : node.at("processors").array()) read(inner, depth + 1);
    } else {
      node.refuse_type("ByteLevel, TemplateProcessing, RobertaProcessing, BertProcessing and Sequence");
    }
  }

 private:
  // In `tokenizers` a second template takes what the first one made for a pair of texts.
  void once(const JsonNode& node) {
    if (seen_) node.refuse("a second template in a sequence is not supported", "join the templates");
    seen_ = true;
  }

  static int32_t read_pair(const JsonNode& node) {  // ["</s>", 2]
    const auto items = node.array();
    if (items.size() != 2) node.refuse("should be a token and its id");
    return read_id(items[1]);
  }

  // The ids of the special tokens of a template, before and after the text.
  void read_template(const JsonNode& node) {
    node.allow({"type", "single", "pair", "special_tokens"});
    once(node);
    const JsonNode tokens = node.at("special_tokens");
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
      for (const JsonNode& id : found->at("ids").array()) (texts == 0 ? prefix_ : suffix_).push_back(read_id(id));
    }
    if (texts != 1) node.at("single").refuse("should name the text (Sequence A) once");
  }

  std::vector<int32_t>& prefix_;
  std::vector<int32_t>& suffix_;
  bool seen_ = false;
};

int64_t read_count(const JsonNode& node) {
  const int64_t count = node.integer();
  if (count < 0) node.refuse("should not be negative");
  return count;
}

void read_decoder_step(const JsonNode& node, Decoder& decoder, int depth) {
  const std::string_view type = node.type();
  const auto alone = [&](Decoder::Step step) {
    node.allow({"type"});
    decoder.add(std::move(step));
  };
  if (type == "Sequence") {
    node.allow({"type", "decoders"});
    if (depth == kDeepest) node.refuse("nests too deep");
    for (const JsonNode& inner : node.at("decoders").array()) read_decoder_step(inner, decoder, depth + 1);
  } else if (type == "ByteLevel") {
    node.allow({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    decoder.add(Decoder::ByteLevel{});
  } else if (type == "ByteFallback") {
    alone(Decoder::ByteFallback{});
  } else if (type == "Fuse") {
    alone(Decoder::Fuse{});
  } else if (type == "Replace") {
    node.allow({"type", "pattern", "content"});
    decoder.add(Decoder::Replace{read_pattern(node.at("pattern")), std::string(node.at("content").string())});
  } else if (type == "Strip") {
    node.allow({"type", "content", "start", "stop"});
    decoder.add(Decoder::Strip{std::string(read_character(node, "content")), read_count(node.at("start")),
                               read_count(node.at("stop"))});
  } else if (type == "Metaspace") {
    node.allow({"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"});
    const auto scheme = node.find("prepend_scheme");
    const bool never = (scheme && scheme->string() == "never") || !node.boolean_or("add_prefix_space", true);
    decoder.add(Decoder::Metaspace{std::string(read_character(node, "replacement")), !never});
  } else if (type == "BPEDecoder") {
    node.allow({"type", "suffix"});
    decoder.add(Decoder::Suffix{std::string(node.at("suffix").string())});
  } else {
    node.refuse_type("ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, BPEDecoder and Sequence");
  }
}

}  // namespace

void read_post_processor(const JsonNode& node, std::vector<int32_t>& prefix, std::vector<int32_t>& suffix) {
  PostProcessorReader(prefix, suffix).read(node, 0);
}

void read_decoder(const JsonNode& node, Decoder& decoder) { read_decoder_step(node, decoder, 0); }

}  // namespace snug
