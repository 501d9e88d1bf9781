#pragma once
// The arrays of a record batch: which of its buffers belong to which field, with sizes checked against lengths, and values
// by their index. Indices go onwards only: so does what lists and texts take of what lies behind them, and a batch costs no
// more than its bytes, whatever it says of itself. Source: arrow/docs/source/format/Columnar.rst.

#include <cstdint>
#include <vector>

#include "data/arrow/buffer.h"
#include "data/arrow/message.h"
#include "data/arrow/schema.h"

namespace snug::arrow {

class Array {
 public:
  Array(const Field& field, int64_t length, bool has_nulls) : field_(&field), length_(length), has_nulls_(has_nulls) {}

  struct Range {
    int64_t begin, end;
  };

  const Field& field() const { return *field_; }
  int64_t length() const { return length_; }
  std::vector<Array>& children() { return children_; }

  bool is_null(int64_t i);

  // Of the kind that has them; `real` of all widths. An integer is read as it is signed, 64 bits without a sign as they
  // stand.
  bool boolean(int64_t i);
  int64_t integer(int64_t i);
  double real(int64_t i);

  // The elements of a list, or the bytes of a text, at `i`. Throws damaged() if they lie before those of an index below.
  Range range(int64_t i);

  // The bytes of a text. They hold until the next call.
  std::string_view text(Range range);

  // The place in the dictionary.
  int64_t index(int64_t i);

 private:
  friend class BatchReader;

  int64_t whole(int64_t i, int width, bool is_signed);

  const Field* field_;
  int64_t length_;
  bool has_nulls_;
  Buffer validity_, offsets_, values_;
  std::vector<Array> children_;
  int64_t taken_ = 0;  // where the last range ended
};

// Takes a record batch apart, field by field in the order of the schema.
class BatchReader {
 public:
  // `batch`: the RecordBatch in `message`, or in its dictionary. Throws Error.
  BatchReader(const InputFile& file, const Message& message, const Table& batch);

  int64_t rows() const { return rows_; }

  // The next field's array, or nothing of it.
  Array take(const Field& field);
  void pass(const Field& field);

  // Throws damaged() if something is left.
  void finish() const;

 private:
  struct Extent {
    int64_t first, second;  // of a node its length and nulls; of a buffer its offset and size
  };

  Extent next(Bytes& from) const;
  Buffer next_buffer();
  void take_buffers(Array& array);

  const InputFile& file_;
  int64_t body_, body_bytes_, rows_;
  Bytes nodes_, buffers_;  // not yet taken
  bool zstandard_ = false;
  int64_t bytes_taken_ = 0;
};

}  // namespace snug::arrow
