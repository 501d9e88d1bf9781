#pragma once
// From a dtype, which is a value, to the type a kernel is compiled for: the one place where the two meet.

#include <algorithm>
#include <initializer_list>
#include <string>

#include "base/dtype.h"
#include "base/error.h"
#include "kernels/ops/optimizers.h"
#include "kernels/rows/lanes.h"

namespace snug::kernels {

// Throws Error unless all are fp32 or one of bf16 and f16. Called before threads start.
inline void require_storage(std::initializer_list<DType> dtypes) {
  for (DType dtype : dtypes)
    if (dtype != DType::f32 && !is_half(dtype))
      throw Error("the CPU kernels store float32, bfloat16 and float16, not " + std::string(name_of(dtype)));
  const auto has = [&](DType dtype) { return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end(); };
  if (has(DType::bf16) && has(DType::f16)) throw Error("one op cannot mix bfloat16 and float16");
}

// Throws Error if the plan gave an op less workspace than it carves.
inline void require_workspace(const Workspace& workspace, int64_t bytes, const char* op) {
  if (workspace.bytes < bytes)
    throw Error(std::string(op) + " needs " + std::to_string(bytes) + " bytes of workspace, not " +
                std::to_string(workspace.bytes));
}

inline const float* as_float(const In& in) { return static_cast<const float*>(in.data); }
inline float* as_float(const CodedState& state) { return static_cast<float*>(state.data); }
inline Bf16* as_bf16(const CodedState& state) { return static_cast<Bf16*>(state.data); }
inline float* as_float(const Out& out) { return static_cast<float*>(out.data); }
template <class Half>
const Half* as_half(const In& in) {
  return static_cast<const Half*>(in.data);
}
template <class Half>
Half* as_half(const Out& out) {
  return static_cast<Half*>(out.data);
}

// work(pointer, …) of the operands' storage types: fp32, or the type of two bytes that they share, so that only mixtures
// that occur are compiled.
template <class Half, class Work>
void with_types_of(const Work& work) {
  work();
}
template <class Half, class Work, class Operand, class... Others>
void with_types_of(const Work& work, const Operand& operand, const Others&... others) {
  if (is_half(operand.dtype)) {
    auto* const pointer = as_half<Half>(operand);
    with_types_of<Half>([&](auto*... rest) { work(pointer, rest...); }, others...);
  } else {
    auto* const pointer = as_float(operand);
    with_types_of<Half>([&](auto*... rest) { work(pointer, rest...); }, others...);
  }
}

// work(pointer) of the operand's storage type.
template <class Operand, class Work>
void with_type(const Operand& operand, const Work& work) {
  if (operand.dtype == DType::f16) {
    work(as_half<F16>(operand));
  } else if (operand.dtype == DType::bf16) {
    work(as_half<Bf16>(operand));
  } else {
    work(as_float(operand));
  }
}

// work(pointer, …) for two or three operands that require_storage allows together.
template <class A, class B, class Work>
void with_types(const A& a, const B& b, const Work& work) {
  if (a.dtype == DType::f16 || b.dtype == DType::f16) return with_types_of<F16>(work, a, b);
  with_types_of<Bf16>(work, a, b);
}
template <class A, class B, class C, class Work>
void with_types(const A& a, const B& b, const C& c, const Work& work) {
  if (a.dtype == DType::f16 || b.dtype == DType::f16 || c.dtype == DType::f16) return with_types_of<F16>(work, a, b, c);
  with_types_of<Bf16>(work, a, b, c);
}

}  // namespace snug::kernels
