#include "tokenizer/tokenizer.h"

#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/tokenizer_parts.h"

namespace snug {
namespace {

constexpr size_t kMaxText = size_t{1} << 30;
constexpr int64_t kMaxFile = int64_t{1} << 30;
constexpr size_t kSpare = 256;  // capacity that the JSON parser may ask for, so that it need not copy

std::filesystem::path find_file(const std::filesystem::path& given) {
  if (file_exists(given) && !std::filesystem::is_directory(given)) return given;
  std::filesystem::path file = given / "tokenizer.json";
  if (!file_exists(file) && file_exists(given / "tokenizer.model")) {
    throw Error("holds a SentencePiece tokenizer.model and no tokenizer.json", given.string(),
                "snug reads byte-level BPE as tokenizer.json; SentencePiece is not supported");
  }
  return file;
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<TokenizerParts> parts) : parts_(std::move(parts)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::load(const std::filesystem::path& directory_or_file) {
  const std::filesystem::path file = find_file(directory_or_file);
  auto parts = std::make_unique<TokenizerParts>();
  read_tokenizer_json(read_text(file, kMaxFile, kSpare, "give the directory that holds tokenizer.json"), file.string(),
                      *parts);
  read_special_tokens(file.parent_path(), *parts);
  return Tokenizer(std::move(parts));
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string& where) {
  auto parts = std::make_unique<TokenizerParts>();
  read_tokenizer_json(std::string(json), where, *parts);
  return Tokenizer(std::move(parts));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  std::vector<int32_t> ids;
  encode_into(text, add_special_tokens, ids);
  return ids;
}

void Tokenizer::encode_into(std::string_view text, bool add_special_tokens, std::vector<int32_t>& ids) const {
  if (text.size() > kMaxText) throw Error("a text is larger than 1 GiB", {}, "split it");
  const TokenizerParts& parts = *parts_;
  std::string repaired;
  if (!is_utf8(text)) text = repaired = utf8_lossy(text);

  const auto word = [&](std::string_view bytes) { parts.bpe.encode(bytes, parts.vocabulary, ids); };
  const auto normalized_part = [&](const AddedTokenMatcher::Part& part) {
    if (part.id >= 0) {
      ids.push_back(part.id);
    } else {
      parts.pretokenizer.cut(part.text, word);
    }
  };
  const auto raw_part = [&](const AddedTokenMatcher::Part& part) {
    if (part.id >= 0) {
      ids.push_back(part.id);
    } else if (parts.nfc && !is_plainly_nfc(part.text)) {
      parts.normalized_tokens.split(nfc(part.text), normalized_part);
    } else {
      parts.normalized_tokens.split(part.text, normalized_part);
    }
  };
  if (add_special_tokens) ids.insert(ids.end(), parts.prefix.begin(), parts.prefix.end());
  parts.raw_tokens.split(text, raw_part);
  if (add_special_tokens) ids.insert(ids.end(), parts.suffix.begin(), parts.suffix.end());
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::string bytes;
  for (const int32_t id : ids) {
    if (skip_special_tokens && parts_->special.contains(id)) continue;
    const std::string_view token = parts_->vocabulary.token(id);
    // Added tokens may hold characters outside the byte alphabet; they stand for themselves.
    if (!kByteAlphabet.append_bytes(bytes, token)) bytes += token;
  }
  return is_utf8(bytes) ? bytes : utf8_lossy(bytes);
}

int64_t Tokenizer::vocab_size() const { return parts_->vocabulary.size(); }

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  const int32_t id = parts_->vocabulary.find(token);
  return id < 0 ? std::nullopt : std::optional(id);
}

std::string_view Tokenizer::token_of(int32_t id) const { return parts_->vocabulary.token(id); }
std::optional<int32_t> Tokenizer::bos_id() const { return parts_->bos; }
std::optional<int32_t> Tokenizer::eos_id() const { return parts_->eos; }
int64_t Tokenizer::memory_bytes() const { return parts_->vocabulary.bytes() + parts_->bpe.bytes(); }

}  // namespace snug
