#pragma once
// A tokenizer as GGUF keys: byte-level BPE from tokenizer.json ("gpt2": tokens, merges, the name of its way of splitting
// text), or SentencePiece from tokenizer.model or a tokenizer.json of that kind ("llama": tokens and scores). A tokenizer
// that llama.cpp would run differently is refused.

#include <filesystem>
#include <string>

#include "formats/gguf_family.h"
#include "formats/gguf_writer.h"

namespace snug {

// `directory`: where the tokenizer's files are. `pretokenizer`: llama.cpp's name for the way of splitting, for one that is
// not recognized; may be empty. The vocabulary is filled up to the family's. Without any tokenizer there the keys say
// "none". Throws Error.
GgufKeys gguf_tokenizer_keys(const std::filesystem::path& directory, const GgufFamily& family,
                             const std::string& pretokenizer);

}  // namespace snug
