#pragma once
// Tokenizer: text to ids and back, by byte-pair encoding as `tokenizer.json` describes it: byte-level (GPT-2, SmolLM2,
// Llama-3, Qwen, …) or SentencePiece-style (Llama-2, Mistral, TinyLlama, Gemma, Phi-3, …). Ids are those of Hugging Face's
// `tokenizers`. Every component or field of the file that is not known is refused by name. It does not know chat templates.

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
class Encoder;

// Bytes [begin, end) of a text.
struct TextSpan {
  int64_t begin = 0, end = 0;
  bool operator==(const TextSpan&) const = default;
};

// The functions that encode are not for two threads at once, though `const`: words met often are remembered. Threads each
// take an Encoder of their own (encoder.h). All else may be called by any thread.
class Tokenizer {
 public:
  // Reads `tokenizer.json` (the file itself or the directory that holds it) and, for special tokens, `tokenizer_config.json`
  // and `special_tokens_map.json` beside it if there. Throws Error naming the file, the field and the way out.
  static Tokenizer load(const std::filesystem::path& directory_or_file);

  // The tokenizer that the text of a `tokenizer.json` describes; `where` names it in errors. No special tokens by name.
  static Tokenizer parse(std::string_view json, const std::string& where);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // The ids of `text`; with `add_special_tokens` also those that the post-processor puts around it. Invalid UTF-8 is read as
  // U+FFFD. No truncation and no padding, whatever the file says of them. Throws Error on texts above 1 GiB.
  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens) const;

  // As encode; the ids are appended to `ids`.
  void encode_into(std::string_view text, bool add_special_tokens, std::vector<int32_t>& ids) const;

  // As encode_into; for each id the bytes of `text` that it came from are appended to `spans`: whole characters, the white
  // space that belongs to a token included (as `tokenizers` with trim_offsets false). A character that takes several ids is
  // in the span of each; ids that the post-processor adds have the span {0, 0}. What a normalizer composes into the
  // character before (NFC: an accent), or a tokenizer drops, is in no span: it belongs to the token before.
  void encode_with_spans(std::string_view text, bool add_special_tokens, std::vector<int32_t>& ids,
                         std::vector<TextSpan>& spans) const;

  // The text of `ids`, valid UTF-8: bytes that form no character become U+FFFD. Ids without a token are passed over.
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens = false) const;

  // Highest id + 1: rows that an embedding must have at least.
  int64_t vocab_size() const;

  // The id of a token as the file spells it ("Ġthe", "<|im_end|>"); none if there is no such token.
  std::optional<int32_t> id_of(std::string_view token) const;

  // The file's spelling of `id`; empty if there is no such token.
  std::string_view token_of(int32_t id) const;

  // The text of "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token" or "mask_token" as the files
  // beside tokenizer.json name it; none if they do not.
  std::optional<std::string_view> special_token(std::string_view name) const;

  // The ids of these; none if there is no such token.
  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> eos_id() const;
  std::optional<int32_t> pad_id() const;
  std::optional<int32_t> unk_id() const;

  // Bytes of the tables.
  int64_t memory_bytes() const;

 private:
  friend class Encoder;
  explicit Tokenizer(std::unique_ptr<TokenizerParts> parts);

  std::unique_ptr<TokenizerParts> parts_;
  std::unique_ptr<Encoder> encoder_;
};

}  // namespace snug
