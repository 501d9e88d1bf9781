#pragma once
// Element types that a safetensors header may name. More of them can be listed and checked than this program can compute
// with.

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/dtype.h"

namespace snug {

struct StoredType {
  std::string_view name;       // as in the header: "BF16"
  int bits;                    // of one element; F4 and F6 pack several to a byte
  std::optional<DType> dtype;  // none: it can be listed but not used
  int rank;                    // the reference writer puts higher ranks first
};

// Null if the format has no such type.
const StoredType* find_stored_type(std::string_view name);
const StoredType& stored_type_of(DType dtype);

}  // namespace snug
