#include "formats/stored_type.h"

#include <algorithm>
#include <array>

namespace snug {

namespace {

// In the reference library's order of rising alignment (safetensors, tensor.rs, enum Dtype).
constexpr auto kTypes = std::to_array<StoredType>({
    {"BOOL", 8, std::nullopt, 0},        {"F4", 4, std::nullopt, 1},       {"F6_E2M3", 6, std::nullopt, 2},
    {"F6_E3M2", 6, std::nullopt, 3},     {"U8", 8, DType::u8, 4},          {"I8", 8, DType::i8, 5},
    {"F8_E5M2", 8, std::nullopt, 6},     {"F8_E4M3", 8, std::nullopt, 7},  {"F8_E5M2FNUZ", 8, std::nullopt, 8},
    {"F8_E4M3FNUZ", 8, std::nullopt, 9}, {"F8_E8M0", 8, std::nullopt, 10}, {"I16", 16, std::nullopt, 11},
    {"U16", 16, std::nullopt, 12},       {"F16", 16, DType::f16, 13},      {"BF16", 16, DType::bf16, 14},
    {"I32", 32, DType::i32, 15},         {"U32", 32, std::nullopt, 16},    {"F32", 32, DType::f32, 17},
    {"C64", 64, std::nullopt, 18},       {"F64", 64, DType::f64, 19},      {"I64", 64, DType::i64, 20},
    {"U64", 64, std::nullopt, 21},
});

}  // namespace

const StoredType* find_stored_type(std::string_view name) {
  const auto* found = std::find_if(kTypes.begin(), kTypes.end(), [&](const StoredType& type) { return type.name == name; });
  return found == kTypes.end() ? nullptr : found;
}

const StoredType& stored_type_of(DType dtype) {
  return *std::find_if(kTypes.begin(), kTypes.end(), [&](const StoredType& type) { return type.dtype == dtype; });
}

}  // namespace snug
