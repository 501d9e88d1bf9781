#pragma once
// Tokens of one row: what its text, pair or conversation becomes, where it is cut, and which tokens are labels. The rules
// are those of dataset.h. One for each thread. Knows nothing of files.

#include <cstdint>
#include <vector>

#include "data/dataset.h"
#include "tokenizer/encoder.h"

namespace snug {

struct EncodedRow {
  std::vector<uint32_t> tokens;  // of all documents, one behind the other; kLabelBit on labels
  std::vector<int32_t> sizes;    // of the documents
  int64_t length = 0;            // tokens before cutting
  bool cut = false, truncated = false, dropped = false;
};

class ExampleEncoder {
 public:
  // The arguments must outlive it. Throws Error if the end-of-text token is not known.
  ExampleEncoder(const DatasetRequest& request, const Tokenizer& tokenizer, const ChatRenderer& renderer);

  // Replaces what is in `row`. Throws Error, without a place, for ids beyond the vocabulary and conversations that cannot
  // be rendered or have nothing to learn.
  void encode(const Example& example, EncodedRow& row);

 private:
  void text(const Example& example, EncodedRow& row);
  void pair(const Example& example, EncodedRow& row);
  void chat(const Chat& chat, EncodedRow& row);
  void end_with_eos(int64_t begin);
  void mark_learned(const Chat& chat, const RenderedChat& rendered);
  void check_vocabulary() const;
  template <typename IsLabel>
  void take_front(EncodedRow& row, const IsLabel& is_label) const;

  const DatasetRequest& request_;
  Encoder tokenizer_;
  const ChatRenderer& renderer_;
  int32_t eos_;
  std::vector<int32_t> ids_;
  std::vector<TextSpan> spans_;  // of ids_, in a conversation
  std::vector<bool> learned_;
};

}  // namespace snug
