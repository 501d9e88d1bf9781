#include "formats/quant_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/checked.h"
#include "base/error.h"
#include "base/quote.h"
#include "model/json.h"

namespace snug {

namespace dom = simdjson::dom;

namespace {

constexpr size_t kMostStateDimensions = 16;
constexpr size_t kLongestOffset = 24;  // characters of a double's shortest decimal form

FourBit read_type(dom::element value, const std::string& where) {
  const std::string type = json_string("quant_type", value, where);
  if (type == "nf4") return FourBit::nf4;
  if (type == "fp4") return FourBit::fp4;
  throw Error("quant_type " + quote(type) + " is not known", where, "nf4 and fp4 are");
}

DType read_dtype(std::string_view field, dom::element value, const std::string& where) {
  const std::string name = json_string(field, value, where);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    if (name == name_of(dtype)) return dtype;
  throw Error(fmt::format("{} {} is not a weight's", field, quote(name)), where, "float32, bfloat16 and float16 are");
}

int64_t read_block_size(std::string_view field, dom::element value, const std::string& where) {
  const int64_t size = json_integer(field, value, 32, kPiece, where);
  if (!std::has_single_bit(static_cast<uint64_t>(size)))
    throw Error(fmt::format("{} {} is no power of two", field, size), where);
  return size;
}

std::vector<int64_t> read_shape(dom::element value, const std::string& where) {
  std::vector<int64_t> shape;
  int64_t elements = 1;
  for (const dom::element one : json_array("shape", value, where)) {
    if (shape.size() == kMostStateDimensions) throw Error("shape has too many dimensions", where);
    shape.push_back(json_integer("shape", one, 1, std::numeric_limits<int64_t>::max(), where));
    if (__builtin_mul_overflow(elements, shape.back(), &elements))
      throw Error("shape is larger than any file can be", where);
  }
  return shape;
}

float read_offset(dom::element value, const std::string& where) {
  const auto offset = static_cast<float>(json_number("nested_offset", value, where));
  if (!std::isfinite(offset)) throw Error("nested_offset does not fit in float32", where);
  return offset;
}

constexpr auto kFields = std::to_array<std::string_view>(
    {"quant_type", "blocksize", "dtype", "shape", "nested_blocksize", "nested_dtype", "nested_offset"});
constexpr size_t kNestedFields = 4;  // index of the first; all of them are there or none

void read_field(QuantState& state, size_t field, dom::element value, const std::string& where) {
  switch (field) {
    case 0: state.format.type = read_type(value, where); break;
    case 1: state.format.block_size = read_block_size("blocksize", value, where); break;
    case 2: state.dtype = read_dtype("dtype", value, where); break;
    case 3: state.shape = read_shape(value, where); break;
    case 4: state.nested_block_size = read_block_size("nested_blocksize", value, where); break;
    case 5:
      if (read_dtype("nested_dtype", value, where) != DType::f32) throw Error("nested_dtype must be float32", where);
      break;
    default: state.nested_offset = read_offset(value, where);
  }
}

std::string decimal(float value) {
  std::string text = fmt::format("{}", static_cast<double>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

int64_t QuantState::elements() const {
  int64_t count = 1;
  for (const int64_t dimension : shape) count = checked_mul(count, dimension);
  return count;
}

QuantState parse_quant_state(std::string_view json, const std::string& where) {
  if (json.size() > kLargestQuantState) throw Error(fmt::format("{} bytes of quant_state are too many", json.size()), where);
  // Python writes these, which are not JSON.
  if (json.find(": NaN") != std::string_view::npos || json.find("Infinity") != std::string_view::npos)
    throw Error("quant_state holds a number that is not finite", where, "the weights were not when they were quantized");
  const JsonDocument document(json, where);
  QuantState state;
  std::array<bool, kFields.size()> seen{};
  for (const auto [name, value] : document.root_object()) {
    const auto* const found = std::find(kFields.begin(), kFields.end(), name);
    if (found == kFields.end()) throw Error("quant_state has an unknown field " + quote(name), where);
    const auto field = static_cast<size_t>(found - kFields.begin());
    read_field(state, field, value, where);
    seen[field] = true;
  }
  state.nested = seen[kNestedFields];
  for (size_t field = 0; field < kFields.size(); ++field)
    if (seen[field] != (field < kNestedFields || state.nested))
      throw Error(fmt::format("quant_state {} {}", seen[field] ? "has no nested_blocksize but" : "has no", kFields[field]),
                  where);
  return state;
}

std::string format_quant_state(const QuantState& state) {
  std::string json =
      fmt::format(R"({{"quant_type": "{}", "blocksize": {}, "dtype": "{}", "shape": [{}])", name_of(state.format.type),
                  state.format.block_size, name_of(state.dtype), fmt::join(state.shape, ", "));
  if (!state.nested) return json + "}";
  const std::string offset = decimal(state.nested_offset);
  json += fmt::format(R"(, "nested_blocksize": {}, "nested_dtype": "float32", "nested_offset": {}}})",
                      state.nested_block_size, offset);
  return json + std::string(kLongestOffset - offset.size(), ' ');
}

}  // namespace snug
