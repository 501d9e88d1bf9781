// The other libraries, as far as training asks for them: contexts of cuSPARSE, cuFFT and cuRAND, and the functions without
// work that lists/ name. lists/refused.inc names what is refused: the rest of the runtime, and the ways into cuDNN and
// cuSOLVER, without which nothing else of theirs can be called.

#include "measure/null_device/entry.h"

namespace snug::null_device {

SNUG_ENTRY int cusparseCreate(Handle* context) { return give(context, new_handle()); }
SNUG_ENTRY int cufftCreate(int* plan) { return give(plan, 1); }
// NOLINTNEXTLINE(readability-function-size): the interface's parameters
SNUG_ENTRY int cufftXtMakePlanMany(int, int, long long*, long long*, long long, long long, int, long long*, long long,
                                   long long, int, long long, size_t* bytes, int) {
  return give(bytes, 0);
}
SNUG_ENTRY int curandCreateGenerator(Handle* generator, int) { return give(generator, new_handle()); }

#define SNUG_DOES_NOTHING(name) \
  SNUG_ENTRY int name() { return kSuccess; }
#define SNUG_REFUSED(name, error) \
  SNUG_ENTRY int name() { return refuse(#name, error); }
#include "measure/null_device/lists/cublas.inc"
#include "measure/null_device/lists/others.inc"
#include "measure/null_device/lists/refused.inc"

}  // namespace snug::null_device
