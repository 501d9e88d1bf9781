// Fuzzes the reader of tokenizer.json, and what it accepts with the input itself as text: ids, spans, and the way back at
// once and id by id. Nothing but snug::Error may come out; spans must lie within the text.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tokenizer/streaming_decoder.h"
#include "tokenizer/tokenizer.h"

namespace {

void require(bool truth) {
  if (!truth) std::abort();
}

void use(const snug::Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  std::vector<snug::TextSpan> spans;
  tokenizer.encode_with_spans(text, true, ids, spans);
  require(ids == tokenizer.encode(text, true) && spans.size() == ids.size());
  for (const snug::TextSpan& span : spans) {
    require(span.begin >= 0 && span.begin <= span.end && span.end <= static_cast<int64_t>(text.size()));
  }
  tokenizer.decode(ids);
  snug::StreamingDecoder decoder(tokenizer);
  for (size_t i = 0; i < ids.size() && i < 200; ++i) decoder.push(ids[i]);
  decoder.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    const snug::Tokenizer tokenizer = snug::Tokenizer::parse(input, "fuzz");
    use(tokenizer, input.substr(0, 4096));
    use(tokenizer, "\xFFIt's \xE2\x96\x81 e\xCC\x81\xCD\x84 \xEA\xB0\x80 12 <s>  \xF0\x9F\x98\x80\n\n a\xE3\x80\x80");
  } catch (const snug::Error&) {
  }
  return 0;
}
