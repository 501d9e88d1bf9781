#include "data/arrow/schema.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/quote.h"
#include "data/arrow/damaged.h"

namespace snug::arrow {
namespace {

constexpr int kDeepest = 40;
constexpr size_t kMostFields = 10'000;
constexpr size_t kMostNames = size_t{16} << 20;  // bytes of all paths

// Types by their number in Schema.fbs's union, with what those that rows cannot have consist of.
struct TypeRow {
  const char* name;
  int buffers;  // -1: not known here
};
constexpr std::array<TypeRow, 27> kTypes = {{{"none", -1},
                                             {"null", 0},
                                             {"int", 2},
                                             {"float", 2},
                                             {"binary", 3},
                                             {"utf8", 3},
                                             {"bool", 2},
                                             {"decimal", 2},
                                             {"date", 2},
                                             {"time", 2},
                                             {"timestamp", 2},
                                             {"interval", 2},
                                             {"list", 2},
                                             {"struct", 1},
                                             {"union", -1},
                                             {"fixed_size_binary", 2},
                                             {"fixed_size_list", 1},
                                             {"map", 2},
                                             {"duration", 2},
                                             {"large_binary", 3},
                                             {"large_utf8", 3},
                                             {"large_list", 2},
                                             {"run_end_encoded", -1},
                                             {"binary_view", -1},
                                             {"string_view", -1},
                                             {"list_view", -1},
                                             {"large_list_view", -1}}};

// Fields of Schema.fbs's tables, by their places.
enum FieldPlace : uint8_t { kName = 0, kTypeNumber = 2, kType = 3, kDictionary = 4, kChildren = 5, kMetadata = 6 };

class SchemaReader {
 public:
  // The fields in the vector at `place` of `parent`, whose path is `path`.
  std::vector<Field> fields(const Table& parent, int place, const std::string& path, int depth) {
    if (depth > kDeepest) unsupported("a schema nested deeper than " + std::to_string(kDeepest) + " levels");
    std::vector<Field> result;
    std::set<std::string_view> names;
    const size_t count = parent.count(place);
    for (size_t i = 0; i < count; ++i) {
      const Table table = parent.element(place, i);
      if (!names.insert(table.text(kName)).second) damaged("its schema names " + quote(table.text(kName)) + " twice");
      result.push_back(field(table, path, depth));
    }
    return result;
  }

 private:
  Field field(const Table& table, const std::string& path, int depth) {
    Field field;
    field.name = table.text(kName);
    field.path = path.empty() ? field.name : path + "." + field.name;
    names_ += field.path.size();
    if (++fields_ > kMostFields) unsupported("a schema of more than 10,000 columns");
    if (names_ > kMostNames) unsupported("a schema with names of more than 16 MiB");
    const size_t number = table.number<uint8_t>(kTypeNumber, 0);
    const TypeRow type = number < kTypes.size() ? kTypes[number] : TypeRow{"unknown", -1};
    field.type = type.name;
    field.buffers = type.buffers;
    if (type.buffers < 0) unsupported("column " + quote(field.path) + " of type " + field.type);
    const std::optional<Table> details = table.table(kType);
    if (!details) damaged("its schema has a column without a type");
    set_kind(field, *details);
    if (const std::optional<Table> dictionary = table.table(kDictionary)) {
      encode(field, *dictionary);
    } else {
      field.children = fields(table, kChildren, field.path, depth + 1);
      check_children(field);
    }
    field.json = field.kind == Kind::text && is_json(table);
    return field;
  }

  static void set_kind(Field& field, const Table& details) {
    const auto sized = [&](Kind kind, int width) {
      field.kind = kind;
      field.width = width;
    };
    constexpr int kOffset = 4, kLargeOffset = 8;
    const std::string& type = field.type;
    if (type == "null") return sized(Kind::null, 0);
    if (type == "bool") return sized(Kind::boolean, 0);
    if (type == "int") return set_integer(field, details);
    if (type == "float") {
      const int precision = details.number<int16_t>(0, 0);
      if (precision < 0 || precision > 2) damaged("its schema has a floating-point type without a width");
      return sized(Kind::real, 2 << precision);
    }
    if (type == "utf8") return sized(Kind::text, kOffset);
    if (type == "large_utf8") return sized(Kind::text, kLargeOffset);
    if (type == "list") return sized(Kind::list, kOffset);
    if (type == "large_list") return sized(Kind::list, kLargeOffset);
    if (type == "map") return sized(Kind::map, kOffset);
    if (type == "struct") return sized(Kind::object, 0);
    if (type != "fixed_size_list") return sized(Kind::bytes, 0);
    sized(Kind::fixed_list, 0);
    field.list_size = details.number<int32_t>(0, 0);
    if (field.list_size < 0) damaged("its schema has lists of a size below 0");
  }

  static void set_integer(Field& field, const Table& details) {
    const int bits = details.number<int32_t>(0, 0);
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64) damaged("its schema has an integer without a width");
    field.kind = Kind::integer;
    field.width = bits / 8;
    field.is_signed = details.number<uint8_t>(1, 0) != 0;
  }

  // Values in a dictionary are indices in the batch; only those of strings are read.
  static void encode(Field& field, const Table& dictionary) {
    DictionaryUse use{.id = dictionary.number<int64_t>(0, 0)};
    if (const std::optional<Table> index = dictionary.table(1)) {
      Field integer;
      set_integer(integer, *index);
      use.index_width = integer.width;
      use.index_signed = integer.is_signed;
    }
    field.buffers = 2;
    if (field.kind == Kind::text) {
      field.dictionary = use;
    } else {
      field.kind = Kind::bytes;
      field.type = "dictionary of " + field.type;
    }
  }

  static void check_children(const Field& field) {
    const bool one = field.kind == Kind::list || field.kind == Kind::fixed_list || field.kind == Kind::map;
    if (one && field.children.size() != 1) damaged("its schema has a list without an element");
    if (!one && field.kind != Kind::object && !field.children.empty()) damaged("its schema has columns below a value");
    if (field.kind != Kind::map) return;
    const Field& entries = field.children.front();
    if (entries.kind != Kind::object || entries.children.size() != 2) damaged("its schema has a map without keys");
    if (entries.children.front().kind != Kind::text)
      unsupported("map " + quote(field.path) + ", whose keys are not strings,");
  }

  static bool is_json(const Table& table) {
    constexpr size_t kMostPairs = 100;  // many columns could share a list of many
    const size_t count = std::min(table.count(kMetadata), kMostPairs);
    for (size_t i = 0; i < count; ++i) {
      const Table pair = table.element(kMetadata, i);
      if (pair.text(0) == "ARROW:extension:name") return pair.text(1) == "arrow.json";
    }
    return false;
  }

  size_t fields_ = 0, names_ = 0;
};

}  // namespace

std::vector<Field> read_schema(const Table& schema) {
  constexpr int kEndianness = 0, kFields = 1;
  if (schema.number<int16_t>(kEndianness, 0) != 0) unsupported("a big-endian file");
  std::vector<Field> columns = SchemaReader().fields(schema, kFields, {}, 0);
  if (columns.empty()) damaged("its schema has no columns");
  return columns;
}

}  // namespace snug::arrow
