#pragma once
// Tokenizer: text to ids and back, by byte-level BPE as `tokenizer.json` describes it (GPT-2, SmolLM2, Llama-3, Qwen). Ids
// are those of Hugging Face's `tokenizers`. Every component or field of the file that is not known is refused by name. It
// does not know chat templates.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

struct TokenizerParts;

// Not for two threads at once, `const` members included: words met often are remembered.
class Tokenizer {
 public:
  // Reads `tokenizer.json` (the file itself or the directory that holds it) and, for bos and eos, `tokenizer_config.json` or
  // `special_tokens_map.json` beside it if there. Throws Error naming the file, the field and the way out.
  static Tokenizer load(const std::filesystem::path& directory_or_file);

  // The tokenizer that the text of a `tokenizer.json` describes; `where` names it in errors. No bos and eos.
  static Tokenizer parse(std::string_view json, const std::string& where);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // The ids of `text`; with `add_special_tokens` also those that the post-processor puts around it. Invalid UTF-8 is read as
  // U+FFFD. No truncation and no padding, whatever the file says of them. Throws Error on texts above 1 GiB.
  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens) const;

  // As encode; the ids are appended to `ids`.
  void encode_into(std::string_view text, bool add_special_tokens, std::vector<int32_t>& ids) const;

  // The text of `ids`, valid UTF-8: bytes that form no character become U+FFFD. Ids without a token are passed over.
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens = false) const;

  // Highest id + 1: rows that an embedding must have at least.
  int64_t vocab_size() const;

  // The id of a token as the file spells it ("Ġthe", "<|im_end|>"); none if there is no such token.
  std::optional<int32_t> id_of(std::string_view token) const;

  // The file's spelling of `id`; empty if there is no such token.
  std::string_view token_of(int32_t id) const;

  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> eos_id() const;

  // Bytes of the tables.
  int64_t memory_bytes() const;

 private:
  explicit Tokenizer(std::unique_ptr<TokenizerParts> parts);

  std::unique_ptr<TokenizerParts> parts_;
};

}  // namespace snug
