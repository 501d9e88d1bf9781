#pragma once
// From a dtype, which is a value, to the type a kernel is compiled for: the one place where the two meet.

#include <initializer_list>
#include <string>

#include "base/dtype.h"
#include "base/error.h"
#include "kernels/kernels.h"
#include "kernels/rows/lanes.h"

namespace snug::kernels {

// Throws Error unless all are fp32 or bf16. Called before threads start.
inline void require_storage(std::initializer_list<DType> dtypes) {
  for (DType dtype : dtypes)
    if (dtype != DType::f32 && dtype != DType::bf16)
      throw Error("the CPU kernels store float32 and bfloat16, not " + std::string(name_of(dtype)));
}

// Throws Error if the plan gave an op less workspace than it carves.
inline void require_workspace(const Workspace& workspace, int64_t bytes, const char* op) {
  if (workspace.bytes < bytes)
    throw Error(std::string(op) + " needs " + std::to_string(bytes) + " bytes of workspace, not " +
                std::to_string(workspace.bytes));
}

inline const float* as_float(const In& in) { return static_cast<const float*>(in.data); }
inline const Bf16* as_bf16(const In& in) { return static_cast<const Bf16*>(in.data); }
inline float* as_float(const CodedState& state) { return static_cast<float*>(state.data); }
inline Bf16* as_bf16(const CodedState& state) { return static_cast<Bf16*>(state.data); }
inline float* as_float(const Out& out) { return static_cast<float*>(out.data); }
inline Bf16* as_bf16(const Out& out) { return static_cast<Bf16*>(out.data); }

// work(pointer) of the operand's storage type.
template <class Operand, class Work>
void with_type(const Operand& operand, const Work& work) {
  if (operand.dtype == DType::bf16) {
    work(as_bf16(operand));
  } else {
    work(as_float(operand));
  }
}

// work(pointer, …) for two or three operands.
template <class A, class B, class Work>
void with_types(const A& a, const B& b, const Work& work) {
  with_type(a, [&](auto* pa) { with_type(b, [&](auto* pb) { work(pa, pb); }); });
}
template <class A, class B, class C, class Work>
void with_types(const A& a, const B& b, const C& c, const Work& work) {
  with_type(a, [&](auto* pa) { with_types(b, c, [&](auto* pb, auto* pc) { work(pa, pb, pc); }); });
}

}  // namespace snug::kernels
