#pragma once
// What a Parquet file says of itself: the footer's schema and column chunks, and the header of a page. Numbers are checked
// for range here; what they mean together is the readers' matter. Source: parquet-format/src/main/thrift/parquet.thrift.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/parquet/bits.h"
#include "data/parquet/compression.h"

namespace snug::parquet {

enum class Physical : uint8_t {
  boolean = 0,
  int32 = 1,
  int64 = 2,
  int96 = 3,
  float32 = 4,
  float64 = 5,
  byte_array = 6,
  fixed_len_byte_array = 7
};

enum class Repetition : uint8_t { required = 0, optional = 1, repeated = 2 };

// What the values of a column are, from the logical type or its older form, the converted type.
enum class Meaning : uint8_t { plain, string, list, map, unsigned_integer, null, other };

enum class Encoding : uint8_t {
  plain = 0,
  plain_dictionary = 2,
  rle = 3,
  bit_packed = 4,
  delta_binary_packed = 5,
  delta_length_byte_array = 6,
  delta_byte_array = 7,
  rle_dictionary = 8,
  byte_stream_split = 9
};

struct SchemaElement {
  std::string name;
  std::optional<Physical> type;  // none: a group
  int64_t type_length = 0;       // bytes of a fixed_len_byte_array
  Repetition repetition = Repetition::required;
  int64_t children = 0;
  Meaning meaning = Meaning::plain;
  std::string meaning_name;  // of Meaning::other: "TIMESTAMP"
};

struct ColumnChunk {
  Physical type = Physical::boolean;
  Codec codec = Codec::uncompressed;
  bool encrypted = false;
  bool elsewhere = false;  // in another file
  int64_t values = 0;      // nulls included
  int64_t first_page = 0;  // offset in the file
  int64_t bytes = 0;       // of all pages, headers included
};

struct RowGroup {
  std::vector<ColumnChunk> columns;  // one for each leaf of the schema
  int64_t rows = 0;
};

struct FileMetadata {
  std::vector<SchemaElement> schema;  // depth first; [0] is the root
  std::vector<RowGroup> row_groups;
};

enum class PageKind : uint8_t { data = 0, index = 1, dictionary = 2, data_v2 = 3 };

struct PageHeader {
  PageKind kind = PageKind::data;
  int64_t header_bytes = 0;
  int64_t compressed_bytes = 0, uncompressed_bytes = 0;
  std::optional<uint32_t> crc;
  int64_t values = 0;
  Encoding encoding = Encoding::plain;
  Encoding definition_encoding = Encoding::rle, repetition_encoding = Encoding::rle;
  int64_t definition_bytes = 0, repetition_bytes = 0;  // of a page v2
  bool compressed = true;                              // the values of a page v2
};

// Throws Error if the file is no Parquet file, is encrypted, damaged, or too large in its parts. Reads the footer alone.
FileMetadata read_metadata(const InputFile& file);

// The header at the front of `bytes`. Throws Error.
PageHeader read_page_header(Bytes bytes);

}  // namespace snug::parquet
