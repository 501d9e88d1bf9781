#include "formats/bnb_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/dynamic_map.h"
#include "base/error.h"
#include "quantize/double_quantization.h"

namespace snug {

namespace {

constexpr std::string_view kAbsmax = ".absmax", kMap = ".quant_map", kNestedAbsmax = ".nested_absmax",
                           kNestedMap = ".nested_quant_map", kState = ".quant_state.bitsandbytes__", kWeight = ".weight",
                           kRowScales = ".SCB", kRowFormat = ".weight_format";

std::string label(const Checkpoint& checkpoint, const TensorEntry& entry) {
  return checkpoint.files()[static_cast<size_t>(entry.file)].string() + ": " + entry.name;
}

std::string joined(std::string_view name, std::string_view suffix) { return std::string(name).append(suffix); }

std::string state_name(std::string_view name, FourBit type) { return joined(name, kState).append(name_of(type)); }

// `base` of "base.suffix", if there is one.
std::optional<std::string_view> before(std::string_view name, std::string_view suffix) {
  if (name.size() <= suffix.size() || !name.ends_with(suffix)) return std::nullopt;
  return name.substr(0, name.size() - suffix.size());
}

// The companion of `weight`, of this dtype and size. Throws Error.
const TensorEntry& companion(const Checkpoint& checkpoint, const TensorEntry& weight, const std::string& name, DType dtype,
                             int64_t elements) {
  const TensorEntry* const entry = checkpoint.find(name);
  if (entry == nullptr)
    throw Error("its companion " + name + " is missing", label(checkpoint, weight), "the file is damaged");
  if (entry->stored->dtype != dtype)
    throw Error(fmt::format("dtype is {}, but must be {}", entry->stored->name, stored_type_of(dtype).name),
                label(checkpoint, *entry));
  if (entry->elements() != elements)
    throw Error(fmt::format("{} elements, but {} asks for {}", entry->elements(), weight.name, elements),
                label(checkpoint, *entry), "the file is damaged");
  return *entry;
}

template <class T>
void read_elements(const Checkpoint& checkpoint, const TensorEntry& entry, int64_t begin, std::span<T> out) {
  checkpoint.read(entry, begin * static_cast<int64_t>(sizeof(T)), std::as_writable_bytes(out));
}

const TensorEntry* find_state(const Checkpoint& checkpoint, std::string_view name, FourBit& type) {
  const TensorEntry* const nf4 = checkpoint.find(state_name(name, FourBit::nf4));
  const TensorEntry* const fp4 = checkpoint.find(state_name(name, FourBit::fp4));
  if (nf4 != nullptr && fp4 != nullptr)
    throw Error(fmt::format("'{}' is said to be both nf4 and fp4", name), label(checkpoint, *fp4));
  type = nf4 != nullptr ? FourBit::nf4 : FourBit::fp4;
  return nf4 != nullptr ? nf4 : fp4;
}

QuantState read_state(const Checkpoint& checkpoint, const TensorEntry& entry, FourBit type) {
  const std::string where = label(checkpoint, entry);
  if (entry.stored->dtype != DType::u8) throw Error("dtype must be U8", where);
  if (entry.bytes > static_cast<int64_t>(kLargestQuantState))
    throw Error(fmt::format("{} bytes of quant_state are too many", entry.bytes), where);
  std::string json(static_cast<size_t>(entry.bytes), '\0');
  checkpoint.read(entry, 0, std::as_writable_bytes(std::span(json)));
  QuantState state = parse_quant_state(json, where);
  if (state.format.type != type)
    throw Error(fmt::format("quant_type {} in a tensor of that name", name_of(state.format.type)), where);
  return state;
}

void check_map(const Checkpoint& checkpoint, const TensorEntry& entry, FourBit type) {
  std::array<float, 16> map{};
  read_elements(checkpoint, entry, 0, std::span<float>(map));
  const std::span<const float, 16> expected = values_of(type);
  for (size_t code = 0; code < map.size(); ++code)
    if (!(std::fabs(map[code] - expected[code]) <= 1e-6F))
      throw Error(fmt::format("code {} stands for {}, but in {} for {}", code, map[code], name_of(type), expected[code]),
                  label(checkpoint, entry));
}

void read_nested(const Checkpoint& checkpoint, const TensorEntry& weight, FourBitTensor& tensor) {
  tensor.nested_absmax =
      &companion(checkpoint, weight, joined(tensor.name, kNestedAbsmax), DType::f32, tensor.state.nested_blocks());
  const TensorEntry& map = companion(checkpoint, weight, joined(tensor.name, kNestedMap), DType::f32, 256);
  read_elements(checkpoint, map, 0, std::span<float>(tensor.nested_map));
  const auto sane = [](float value) { return std::fabs(value) <= 1; };
  if (!std::all_of(tensor.nested_map.begin(), tensor.nested_map.end(), sane))
    throw Error("a value is not between -1 and 1", label(checkpoint, map));
}

void check_finite(const Checkpoint& checkpoint, const TensorEntry& entry, int64_t begin, std::span<const float> scales) {
  const auto bad = std::find_if(scales.begin(), scales.end(), [](float value) { return !std::isfinite(value); });
  if (bad != scales.end())
    throw Error(fmt::format("scale {} is not finite", begin + (bad - scales.begin())), label(checkpoint, entry),
                "the file is damaged");
}

template <class T>
TensorWithBytes with_bytes(std::string name, DType dtype, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return {{std::move(name), dtype, {static_cast<int64_t>(values.size())}}, {bytes.begin(), bytes.end()}};
}

}  // namespace

std::string companion_of(std::string_view name) {
  for (const std::string_view suffix :
       {kNestedAbsmax, kNestedMap, kAbsmax, kMap, std::string_view(".quant_state.bitsandbytes__nf4"),
        std::string_view(".quant_state.bitsandbytes__fp4")})
    if (const auto base = before(name, suffix)) return std::string(*base);
  for (const std::string_view suffix : {kRowScales, kRowFormat})
    if (const auto base = before(name, suffix)) return joined(*base, kWeight);
  return {};
}

std::optional<FourBitTensor> find_four_bit(const Checkpoint& checkpoint, std::string_view name) {
  FourBit type{};
  const TensorEntry* const state = find_state(checkpoint, name, type);
  if (state == nullptr) return std::nullopt;
  FourBitTensor tensor{.name = std::string(name), .state = read_state(checkpoint, *state, type)};
  tensor.codes = &checkpoint.at(name);
  const int64_t bytes = packed_bytes(tensor.state.elements());
  if (tensor.codes->bytes != bytes)
    throw Error(fmt::format("{} bytes, but shape [{}] in 4 bits makes {}", tensor.codes->bytes,
                            fmt::join(tensor.state.shape, ", "), bytes),
                label(checkpoint, *tensor.codes), "the file is damaged");
  tensor.absmax = &companion(checkpoint, *tensor.codes, joined(name, kAbsmax), tensor.state.nested ? DType::u8 : DType::f32,
                             tensor.state.blocks());
  check_map(checkpoint, companion(checkpoint, *tensor.codes, joined(name, kMap), DType::f32, 16), type);
  if (tensor.state.nested) read_nested(checkpoint, *tensor.codes, tensor);
  return tensor;
}

std::optional<Int8Tensor> find_int8(const Checkpoint& checkpoint, std::string_view name) {
  const auto base = before(name, kWeight);
  if (!base || checkpoint.find(joined(*base, kRowScales)) == nullptr) return std::nullopt;
  const TensorEntry& codes = checkpoint.at(name);
  if (codes.stored->dtype != DType::i8 || codes.shape.size() != 2)
    throw Error(fmt::format("it has row scales, but is {} with {} dimensions", codes.stored->name, codes.shape.size()),
                label(checkpoint, codes), "LLM.int8 weights are I8 matrices");
  Int8Tensor tensor{std::string(name), codes.shape[0], codes.shape[1], &codes, nullptr};
  tensor.absmax = &companion(checkpoint, codes, joined(*base, kRowScales), DType::f32, tensor.rows);
  if (checkpoint.find(joined(*base, kRowFormat)) != nullptr) {  // older files have none
    const TensorEntry& entry = companion(checkpoint, codes, joined(*base, kRowFormat), DType::u8, 1);
    uint8_t format = 0;
    read_elements(checkpoint, entry, 0, std::span(&format, 1));
    if (format != 0)
      throw Error(fmt::format("weight_format {}", format), label(checkpoint, entry),
                  "only 0, row-major, can be read: save it with a newer bitsandbytes");
  }
  return tensor;
}

void read_absmax(const Checkpoint& checkpoint, const FourBitTensor& tensor, int64_t begin, std::span<float> out) {
  const QuantState& state = tensor.state;
  if (!state.nested) {
    read_elements(checkpoint, *tensor.absmax, begin, out);
    check_finite(checkpoint, *tensor.absmax, begin, out);
    return;
  }
  std::array<uint8_t, kPiece> codes;
  for (int64_t at = begin, end = begin + static_cast<int64_t>(out.size()); at < end;) {
    const int64_t block = at / state.nested_block_size;
    const int64_t count = std::min((block + 1) * state.nested_block_size, end) - at;  // of one nested block
    const auto some = std::span(codes).first(static_cast<size_t>(count));
    const auto scales = out.subspan(static_cast<size_t>(at - begin), some.size());
    float nested = 0;
    read_elements(checkpoint, *tensor.absmax, at, some);
    read_elements(checkpoint, *tensor.nested_absmax, block, std::span(&nested, 1));
    dequantize_absmax(tensor.nested_map, state.nested_block_size, some, std::span(&nested, 1), state.nested_offset, scales);
    check_finite(checkpoint, *tensor.absmax, at, scales);
    at += count;
  }
}

void read_absmax(const Checkpoint& checkpoint, const Int8Tensor& tensor, int64_t begin, std::span<float> out) {
  read_elements(checkpoint, *tensor.absmax, begin, out);
  check_finite(checkpoint, *tensor.absmax, begin, out);
  if (std::any_of(out.begin(), out.end(), [](float value) { return value < 0; }))
    throw Error("a row's scale is negative", label(checkpoint, *tensor.absmax), "the file is damaged");
}

std::vector<TensorWithBytes> four_bit_tensors(const std::string& name, const QuantState& state) {
  std::vector<TensorWithBytes> tensors = {
      {{name, DType::u8, {packed_bytes(state.elements()), 1}}, {}},
      {{joined(name, kAbsmax), state.nested ? DType::u8 : DType::f32, {state.blocks()}}, {}},
  };
  if (state.nested) tensors.push_back({{joined(name, kNestedAbsmax), DType::f32, {state.nested_blocks()}}, {}});
  tensors.push_back(with_bytes<float>(joined(name, kMap), DType::f32, values_of(state.format.type)));
  if (state.nested)
    tensors.push_back(with_bytes<float>(joined(name, kNestedMap), DType::f32, DynamicMap::of_signed().values()));
  const std::string json = format_quant_state(state);
  tensors.push_back(with_bytes<char>(state_name(name, state.format.type), DType::u8, json));
  return tensors;
}

std::vector<TensorWithBytes> int8_tensors(const std::string& name, int64_t rows, int64_t columns) {
  const auto base = before(name, kWeight);
  if (!base) throw Error("'" + name + "' cannot be stored as LLM.int8", {}, "names must end in .weight");
  return {{{name, DType::i8, {rows, columns}}, {}},
          {{joined(*base, kRowScales), DType::f32, {rows}}, {}},
          {{joined(*base, kRowFormat), DType::u8, {}}, {std::byte{0}}}};
}

}  // namespace snug
