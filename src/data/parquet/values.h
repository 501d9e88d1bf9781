#pragma once
// The values of one page in each of Parquet's encodings, given one after the other. Source: parquet-format/Encodings.md.

#include <memory>
#include <string_view>
#include <vector>

#include "data/parquet/metadata.h"

namespace snug::parquet {

// One value; which member counts is the physical type's matter: `integer` (boolean, int32, int64), `real`, or `text`, which
// lies in the page or in the decoder and holds until the next value is asked for.
struct Scalar {
  int64_t integer = 0;
  double real = 0.0;
  std::string_view text;
};

class ValueDecoder {
 public:
  ValueDecoder() = default;
  ValueDecoder(const ValueDecoder&) = delete;
  ValueDecoder& operator=(const ValueDecoder&) = delete;
  virtual ~ValueDecoder() = default;

  // Throws damaged() when the page has no more.
  virtual Scalar next() = 0;
};

using Dictionary = std::vector<Scalar>;

// The values of a dictionary page. Throws damaged().
Dictionary read_dictionary(Bytes bytes, int64_t values, Physical type, int64_t type_length);

// A decoder for the values of a page; `most` is how many there can be. `bytes` and `dictionary` must outlive it. Throws
// Error for encodings that the type cannot have, or that are not known.
std::unique_ptr<ValueDecoder> make_decoder(Encoding encoding, Bytes bytes, int64_t most, Physical type, int64_t type_length,
                                           const Dictionary* dictionary);

}  // namespace snug::parquet
