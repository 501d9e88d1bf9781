#pragma once
// How many elements lie in so many bytes: the way back from bytes_of (base/dtype.h).

#include "base/dtype.h"

namespace snug {

inline int64_t element_count(DType dtype, int64_t bytes) { return is_4bit(dtype) ? 2 * bytes : bytes / size_of(dtype); }

}  // namespace snug
