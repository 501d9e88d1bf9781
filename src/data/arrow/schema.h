#pragma once
// The tree of an Arrow schema: what each array of a record batch holds, and of how many buffers it consists. Source:
// arrow/format/Schema.fbs and docs/source/format/Columnar.rst (buffer layouts).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/arrow/flatbuffer.h"

namespace snug::arrow {

// bytes: binary, dates, decimals and whatever else has buffers that are known and values that rows cannot have.
enum class Kind : uint8_t { null, boolean, integer, real, text, bytes, list, fixed_list, object, map };

// Values that stand as indices into a dictionary of strings.
struct DictionaryUse {
  int64_t id = 0;
  int index_width = 4;  // bytes
  bool index_signed = true;
};

struct Field {
  Kind kind = Kind::null;
  std::string name;
  std::string path;             // in errors: "messages.item.role"
  std::string type;             // as Arrow calls it: "timestamp"
  int buffers = 0;              // without its children's
  int width = 0;                // bytes of a number, or of an offset of text, lists and maps
  bool is_signed = true;        // of an integer
  int64_t list_size = 0;        // of a fixed_list
  bool json = false;            // text that is JSON (arrow.json), as `datasets` keeps values of mixed types
  std::vector<Field> children;  // the element, the fields, or a map's entries; none where there is a dictionary
  std::optional<DictionaryUse> dictionary;
};

// The columns of a Schema message. Throws Error for schemas that contradict themselves, are nested too deep, are big-endian,
// or have types of which nothing is known.
std::vector<Field> read_schema(const Table& schema);

}  // namespace snug::arrow
