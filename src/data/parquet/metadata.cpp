#include "data/parquet/metadata.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "data/parquet/damaged.h"
#include "data/parquet/thrift.h"

namespace snug::parquet {
namespace {

constexpr int64_t kMostFooter = int64_t{64} << 20;
constexpr size_t kMostElements = 10'000;
constexpr int64_t kTrailer = 8;  // footer length and magic

// Reads a field of a structure if it is the one with this number.
int64_t bounded(int64_t value, int64_t low, int64_t high, const char* what) {
  if (value < low || value > high) damaged(std::string(what) + " is " + std::to_string(value));
  return value;
}

int64_t count(ThriftReader& in, ThriftType type, const char* what) { return bounded(in.integer(type), 0, INT64_MAX, what); }

template <typename Enum>
Enum choice(ThriftReader& in, ThriftType type, int64_t most, const char* what) {
  return static_cast<Enum>(bounded(in.integer(type), 0, most, what));
}

void from_converted(SchemaElement& element, int64_t converted) {
  constexpr std::array<const char*, 22> kNames = {"",     "",          "",          "", "",     "DECIMAL", "DATE", "TIME",
                                                  "TIME", "TIMESTAMP", "TIMESTAMP", "", "",     "",        "",     "",
                                                  "",     "",          "",          "", "BSON", "INTERVAL"};
  if (converted == 0 || converted == 4 || converted == 19) element.meaning = Meaning::string;  // UTF8, ENUM, JSON
  if (converted == 1 || converted == 2) element.meaning = Meaning::map;                        // MAP, MAP_KEY_VALUE
  if (converted == 3) element.meaning = Meaning::list;
  if (converted >= 11 && converted <= 14) element.meaning = Meaning::unsigned_integer;
  if (converted < 0 || converted >= static_cast<int64_t>(kNames.size())) return;
  if (*kNames[static_cast<size_t>(converted)] == '\0') return;
  element.meaning = Meaning::other;
  element.meaning_name = kNames[static_cast<size_t>(converted)];
}

// The union LogicalType: the field that is there says which.
void read_logical(ThriftReader& in, SchemaElement& element) {
  in.structure([&](int16_t id, ThriftType type) {
    constexpr std::array<const char*, 19> kNames = {
        "", "", "", "",     "",     "DECIMAL", "DATE",    "TIME",     "TIMESTAMP", "",
        "", "", "", "BSON", "UUID", "FLOAT16", "VARIANT", "GEOMETRY", "GEOGRAPHY"};
    if (id == 1 || id == 4 || id == 12) element.meaning = Meaning::string;  // STRING, ENUM, JSON
    if (id == 2) element.meaning = Meaning::map;
    if (id == 3) element.meaning = Meaning::list;
    if (id == 11) element.meaning = Meaning::null;
    if (id >= 0 && static_cast<size_t>(id) < kNames.size() && *kNames[static_cast<size_t>(id)] != '\0') {
      element.meaning = Meaning::other;
      element.meaning_name = kNames[static_cast<size_t>(id)];
    }
    if (id != 10 || type != ThriftType::structure) return false;
    bool is_signed = true;  // INTEGER
    in.structure([&](int16_t field, ThriftType field_type) {
      if (field != 2) return false;
      is_signed = in.boolean(field_type);
      return true;
    });
    element.meaning = is_signed ? Meaning::plain : Meaning::unsigned_integer;
    return true;
  });
}

SchemaElement read_element(ThriftReader& in) {
  SchemaElement element;
  int64_t converted = -1;
  bool logical = false;
  in.structure([&](int16_t id, ThriftType type) {
    switch (id) {
      case 1: element.type = choice<Physical>(in, type, 7, "a column's type"); return true;
      case 2: element.type_length = bounded(in.integer(type), 0, int64_t{1} << 20, "a column's width"); return true;
      case 3: element.repetition = choice<Repetition>(in, type, 2, "a column's repetition"); return true;
      case 4: element.name = in.binary(type); return true;
      case 5: element.children = bounded(in.integer(type), 0, kMostElements, "a column's count of children"); return true;
      case 6: converted = in.integer(type); return true;
      case 10:
        if (type != ThriftType::structure) return false;
        read_logical(in, element);
        logical = true;
        return true;
      default: return false;
    }
  });
  if (!logical) from_converted(element, converted);
  if (element.children > 0) element.type.reset();
  return element;
}

void read_chunk_metadata(ThriftReader& in, ColumnChunk& chunk) {
  int64_t dictionary = -1;
  int64_t data = -1;
  in.structure([&](int16_t id, ThriftType type) {
    switch (id) {
      case 1: chunk.type = choice<Physical>(in, type, 7, "a column's type"); return true;
      case 4: chunk.codec = choice<Codec>(in, type, 7, "a column's compression"); return true;
      case 5: chunk.values = count(in, type, "a column's count of values"); return true;
      case 7: chunk.bytes = count(in, type, "a column's size"); return true;
      case 9: data = count(in, type, "a column's place"); return true;
      case 11: dictionary = in.integer(type); return true;
      default: return false;
    }
  });
  if (data < 0) damaged("a column's place is missing");
  chunk.first_page = dictionary > 0 && dictionary < data ? dictionary : data;
}

ColumnChunk read_chunk(ThriftReader& in) {
  ColumnChunk chunk;
  bool there = false;
  in.structure([&](int16_t id, ThriftType type) {
    if (id == 1) chunk.elsewhere = !in.binary(type).empty();
    if (id == 3 && type == ThriftType::structure) {
      read_chunk_metadata(in, chunk);
      there = true;
    }
    if (id == 8) chunk.encrypted = true;
    return id == 1 || (id == 3 && type == ThriftType::structure);
  });
  if (!there && !chunk.encrypted) damaged("a column's description is missing");
  return chunk;
}

RowGroup read_row_group(ThriftReader& in) {
  RowGroup group;
  in.structure([&](int16_t id, ThriftType type) {
    if (id == 1 && type == ThriftType::list) {
      in.list(ThriftType::structure, [&] { group.columns.push_back(read_chunk(in)); });
      return true;
    }
    if (id == 3) group.rows = count(in, type, "a row group's count of rows");
    return id == 3;
  });
  if (group.columns.empty()) damaged("a row group has no columns");
  return group;
}

FileMetadata read_footer(Bytes bytes) {
  FileMetadata metadata;
  ThriftReader in(bytes);
  in.structure([&](int16_t id, ThriftType type) {
    if (id == 2 && type == ThriftType::list) {
      in.list(ThriftType::structure, [&] {
        if (metadata.schema.size() >= kMostElements) unsupported("a schema of more than 10,000 columns");
        metadata.schema.push_back(read_element(in));
      });
      return true;
    }
    if (id == 4 && type == ThriftType::list) {
      in.list(ThriftType::structure, [&] { metadata.row_groups.push_back(read_row_group(in)); });
      return true;
    }
    if (id == 8) unsupported("encryption");
    return false;
  });
  if (metadata.schema.empty()) damaged("it has no schema");
  return metadata;
}

void read_data_header(ThriftReader& in, PageHeader& page) {
  in.structure([&](int16_t id, ThriftType type) {
    switch (id) {
      case 1: page.values = bounded(in.integer(type), 0, INT32_MAX, "a page's count of values"); return true;
      case 2: page.encoding = choice<Encoding>(in, type, 255, "a page's encoding"); return true;
      case 3: page.definition_encoding = choice<Encoding>(in, type, 255, "a page's encoding"); return true;
      case 4: page.repetition_encoding = choice<Encoding>(in, type, 255, "a page's encoding"); return true;
      default: return false;
    }
  });
}

void read_dictionary_header(ThriftReader& in, PageHeader& page) {
  in.structure([&](int16_t id, ThriftType type) {
    if (id == 1) page.values = bounded(in.integer(type), 0, INT32_MAX, "a dictionary's count of values");
    if (id == 2) page.encoding = choice<Encoding>(in, type, 255, "a page's encoding");
    return id == 1 || id == 2;
  });
}

void read_data_header_v2(ThriftReader& in, PageHeader& page) {
  in.structure([&](int16_t id, ThriftType type) {
    switch (id) {
      case 1: page.values = bounded(in.integer(type), 0, INT32_MAX, "a page's count of values"); return true;
      case 4: page.encoding = choice<Encoding>(in, type, 255, "a page's encoding"); return true;
      case 5: page.definition_bytes = bounded(in.integer(type), 0, INT32_MAX, "a page's size"); return true;
      case 6: page.repetition_bytes = bounded(in.integer(type), 0, INT32_MAX, "a page's size"); return true;
      case 7: page.compressed = in.boolean(type); return true;
      default: return false;
    }
  });
}

}  // namespace

PageHeader read_page_header(Bytes bytes) {
  PageHeader page;
  ThriftReader in(bytes);
  bool detailed = false;
  in.structure([&](int16_t id, ThriftType type) {
    const bool details = type == ThriftType::structure;
    if (id == 1) page.kind = choice<PageKind>(in, type, 3, "a page's kind");
    if (id == 2) page.uncompressed_bytes = bounded(in.integer(type), 0, INT32_MAX, "a page's size");
    if (id == 3) page.compressed_bytes = bounded(in.integer(type), 0, INT32_MAX, "a page's size");
    if (id == 4) page.crc = static_cast<uint32_t>(in.integer(type));
    if (id == 5 && details && page.kind == PageKind::data) return read_data_header(in, page), detailed = true;
    if (id == 8 && details && page.kind == PageKind::data_v2) return read_data_header_v2(in, page), detailed = true;
    if (id == 7 && details && page.kind == PageKind::dictionary) return read_dictionary_header(in, page), detailed = true;
    return id >= 1 && id <= 4;
  });
  if (!detailed && page.kind != PageKind::index) damaged("a page has no header of its kind");
  page.header_bytes = static_cast<int64_t>(in.position());
  return page;
}

FileMetadata read_metadata(const InputFile& file) {
  const int64_t size = file.size();
  std::array<char, kTrailer> trailer{};
  if (size < kTrailer + 4) damaged("it has only " + std::to_string(size) + " bytes");
  file.read_at(std::as_writable_bytes(std::span(trailer)), size - kTrailer);
  const std::string_view magic(trailer.data() + 4, 4);
  if (magic == "PARE") unsupported("encryption");
  if (magic != "PAR1") damaged("it does not end as a Parquet file does; it may be cut off");
  uint32_t length = 0;
  std::memcpy(&length, trailer.data(), sizeof length);
  if (length > size - kTrailer - 4) damaged("its footer is longer than the file");
  if (length > kMostFooter) unsupported("a footer of more than 64 MiB");
  std::vector<std::byte> footer(length);
  file.read_at(footer, size - kTrailer - length);
  return read_footer(footer);
}

}  // namespace snug::parquet
