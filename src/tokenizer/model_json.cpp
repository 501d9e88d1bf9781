// tokenizer.json: the vocabulary and the merges. Both are read some rows at a time: what each row looks up in tables larger
// than the caches is asked for before it is needed.

#include <string>
#include <vector>

#include "tokenizer/json_document.h"
#include "tokenizer/json_node.h"
#include "tokenizer/tokenizer_components.h"

namespace snug {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kRows = 64;

class VocabularyReader {
 public:
  VocabularyReader(const JsonNode& node, Vocabulary& vocabulary) : node_(node), vocabulary_(vocabulary) {}

  void read() {
    dom::object object;
    if (node_.element().get(object) != simdjson::SUCCESS) node_.refuse("should be an object of token: id");
    // simdjson's size saturates at 2^24 - 1, above the largest vocabulary; eight characters a token is the usual mean.
    vocabulary_.reserve(object.size(), object.size() * 8);
    for (const auto field : object) {
      int64_t id = 0;
      if (field.value.get(id) != simdjson::SUCCESS || id < 0 || id >= Vocabulary::kMaxIds) {
        node_.refuse(
            "the id of " + quote(field.key) + " is not a whole number from 0 to " + std::to_string(Vocabulary::kMaxIds - 1),
            kDamaged);
      }
      rows_.push_back({field.key, Vocabulary::hash_of(field.key), static_cast<int32_t>(id)});
      vocabulary_.prefetch(rows_.back().hash);
      if (rows_.size() == kRows) add_rows();
    }
    add_rows();
    if (vocabulary_.size() == 0) node_.refuse("is empty", kDamaged);
  }

 private:
  struct Row {
    std::string_view token;
    uint64_t hash;
    int32_t id;
  };

  void add_rows() {
    for (const Row& row : rows_) {
      switch (vocabulary_.add(row.token, row.id, row.hash)) {
        case Vocabulary::Outcome::added: break;
        case Vocabulary::Outcome::token_taken: node_.refuse(quote(row.token) + " stands twice", kDamaged);
        case Vocabulary::Outcome::id_taken:
          node_.refuse("id " + std::to_string(row.id) + " stands for two tokens", kDamaged);
      }
    }
    rows_.clear();
  }

  const JsonNode& node_;
  Vocabulary& vocabulary_;
  std::vector<Row> rows_;
};

class MergeReader {
 public:
  MergeReader(const JsonNode& node, const Vocabulary& vocabulary, MergeTable& merges)
      : node_(node), vocabulary_(vocabulary), merges_(merges) {}

  void read() {
    dom::array list;
    if (node_.element().get(list) != simdjson::SUCCESS) node_.refuse("should be a list");
    merges_.reserve(list.size());
    for (const dom::element item : list) {
      read_item(item);
      if (rows_.size() == kRows) add_rows();
      ++index_;
    }
    add_rows();
  }

 private:
  struct Part {
    explicit Part(std::string_view given) : token(given), hash(Vocabulary::hash_of(given)) {}
    std::string_view token;
    uint64_t hash;
    int32_t id = -1;  // at first a guess
  };
  struct Row {
    Part left, right;
    int64_t index;
  };

  [[noreturn]] void refuse(int64_t index, const std::string& what) const {
    node_.refuse("merge " + std::to_string(index) + " " + what, kDamaged);
  }

  void read_item(dom::element item) {
    std::string_view text;
    dom::array pair;
    if (item.get(text) == simdjson::SUCCESS) return read_string(text);
    if (item.get(pair) != simdjson::SUCCESS || pair.size() != 2) refuse(index_, "is neither a pair nor a string");
    std::string_view right;
    if (pair.at(0).get(text) != simdjson::SUCCESS || pair.at(1).get(right) != simdjson::SUCCESS)
      refuse(index_, "is no pair of strings");
    put(text, right);
  }

  // As "a b". Older files began with a line of merges.txt.
  void read_string(std::string_view text) {
    if (text.starts_with("#version")) return;
    const size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
      refuse(index_, "(" + quote(text) + ") cannot be split in two at one space");
    }
    put(text.substr(0, space), text.substr(space + 1));
  }

  void put(std::string_view left, std::string_view right) {
    rows_.push_back({Part(left), Part(right), index_});
    vocabulary_.prefetch(rows_.back().left.hash);
    vocabulary_.prefetch(rows_.back().right.hash);
  }

  int32_t id_of(std::string_view token, uint64_t hash, int64_t index) const {
    const int32_t id = vocabulary_.find(token, hash);
    if (id < 0) refuse(index, "names " + quote(token) + ", which the vocabulary lacks");
    return id;
  }

  void add_rows() {
    for (Row& row : rows_) {
      for (Part* part : {&row.left, &row.right}) part->id = vocabulary_.prefetch_token(part->hash);
    }
    for (const Row& row : rows_) {
      for (const Part* part : {&row.left, &row.right}) vocabulary_.prefetch_text(part->id);
    }
    for (Row& row : rows_) {
      for (Part* part : {&row.left, &row.right}) part->id = id_of(part->token, part->hash, row.index);
      merges_.prefetch(row.left.id, row.right.id);
    }
    for (const Row& row : rows_) merges_.add(row.left.id, row.right.id, result_of(row));
    rows_.clear();
  }

  // Most merges make the token that the last one made, or the next: a look at two neighbours saves a search.
  int32_t result_of(const Row& row) {
    const std::string_view left = row.left.token;
    const std::string_view right = row.right.token;
    const auto made = [&](int32_t id) {
      const std::string_view token = vocabulary_.token(id);
      return vocabulary_.contains(id) && token.size() == left.size() + right.size() && token.starts_with(left) &&
             token.ends_with(right);
    };
    if (made(result_) || made(++result_)) return result_;
    joined_.assign(left).append(right);
    result_ = id_of(joined_, Vocabulary::hash_of(joined_), row.index);
    return result_;
  }

  const JsonNode& node_;
  const Vocabulary& vocabulary_;
  MergeTable& merges_;
  std::vector<Row> rows_;
  std::string joined_;
  int32_t result_ = -1;
  int64_t index_ = 0;
};

void require_empty_string(const JsonNode& model, std::string_view key) {
  const auto node = model.find(key);
  if (node && !node->string().empty()) node->refuse("word prefixes and suffixes are not supported", "use another model");
}

}  // namespace

void read_model(const JsonNode& model, Vocabulary& vocabulary, MergeTable& merges) {
  if (const auto type = model.find("type"); type && type->string() != "BPE") {
    model.refuse_type("BPE; Unigram, WordPiece and WordLevel are not supported");
  }
  model.allow({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
               "byte_fallback", "ignore_merges", "vocab", "merges"});
  const JsonNode tokens = model.at("vocab");
  VocabularyReader(tokens, vocabulary).read();
  const JsonNode pairs = model.at("merges");
  MergeReader(pairs, vocabulary, merges).read();
  if (const auto dropout = model.find("dropout")) {
    double rate = -1.0;
    if (dropout->element().get(rate) != simdjson::SUCCESS || rate != 0.0)
      dropout->refuse("merge dropout is not supported", "set it to null");
  }
  require_empty_string(model, "continuing_subword_prefix");
  require_empty_string(model, "end_of_word_suffix");
}

}  // namespace snug
