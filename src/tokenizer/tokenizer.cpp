#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/encoder.h"
#include "tokenizer/tokenizer_parts.h"

namespace snug {
namespace {

constexpr int64_t kMaxFile = int64_t{1} << 30;
constexpr size_t kSpare = 256;  // capacity that the JSON parser may ask for, so that it need not copy

std::filesystem::path find_file(const std::filesystem::path& given) {
  if (file_exists(given) && !directory_exists(given)) return given;
  std::filesystem::path file = given / "tokenizer.json";
  if (!file_exists(file) && file_exists(given / "tokenizer.model")) {
    throw Error("holds a SentencePiece tokenizer.model and no tokenizer.json", given.string(),
                "snug reads tokenizer.json; transformers' save_pretrained writes it");
  }
  return file;
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<TokenizerParts> parts)
    : parts_(std::move(parts)), encoder_(std::make_unique<Encoder>(*parts_)) {}
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
  encoder_->encode(text, add_special_tokens, ids);
}

void Tokenizer::encode_with_spans(std::string_view text, bool add_special_tokens, std::vector<int32_t>& ids,
                                  std::vector<TextSpan>& spans) const {
  encoder_->encode_with_spans(text, add_special_tokens, ids, spans);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const int32_t id : ids) {
    if (skip_special_tokens && parts_->special.contains(id)) continue;
    if (!parts_->added.contains(id) && !parts_->model.contains(id)) continue;
    const auto other = parts_->decoded_as.find(id);
    tokens.emplace_back(other == parts_->decoded_as.end() ? parts_->token(id) : other->second);
  }
  return parts_->decoder.decode(std::move(tokens));
}

int64_t Tokenizer::vocab_size() const { return std::max(parts_->model.size(), parts_->added.size()); }

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  const int32_t id = parts_->find(token);
  return id < 0 ? std::nullopt : std::optional(id);
}

std::string_view Tokenizer::token_of(int32_t id) const { return parts_->token(id); }

std::optional<std::string_view> Tokenizer::special_token(std::string_view name) const {
  const auto found = parts_->special_tokens.find(name);
  return found == parts_->special_tokens.end() ? std::nullopt : std::optional<std::string_view>(found->second);
}

namespace {

std::optional<int32_t> special_id(const TokenizerParts& parts, std::string_view name) {
  const auto found = parts.special_ids.find(name);
  return found == parts.special_ids.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::optional<int32_t> Tokenizer::bos_id() const { return special_id(*parts_, "bos_token"); }
std::optional<int32_t> Tokenizer::eos_id() const { return special_id(*parts_, "eos_token"); }
std::optional<int32_t> Tokenizer::pad_id() const { return special_id(*parts_, "pad_token"); }
std::optional<int32_t> Tokenizer::unk_id() const { return special_id(*parts_, "unk_token"); }

int64_t Tokenizer::memory_bytes() const {
  const TokenizerParts& p = *parts_;
  return p.model.bytes() + p.added.bytes() + p.bpe.bytes() + p.raw_tokens.bytes() + p.normalized_tokens.bytes();
}

}  // namespace snug
