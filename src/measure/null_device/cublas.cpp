// cuBLAS and cuBLASLt: contexts, descriptors and what is asked of them. The products themselves are in lists/cublas.inc:
// they do nothing.

#include <cstring>

#include "measure/null_device/entry.h"

namespace snug::null_device {

namespace {

struct Heuristic {  // cublasLtMatmulHeuristicResult_t
  uint64_t algorithm[8];
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};

}  // namespace

SNUG_ENTRY int cublasCreate_v2(Handle* context) { return give(context, new_handle()); }
SNUG_ENTRY int cublasDestroy_v2(Handle) { return kSuccess; }
SNUG_ENTRY int cublasGetVersion_v2(Handle, int* version) { return give(version, 130000); }
SNUG_ENTRY int cublasGetMathMode(Handle, int* mode) { return give(mode, 0); }
SNUG_ENTRY int cublasGetPointerMode_v2(Handle, int* mode) { return give(mode, 0); }
SNUG_ENTRY int cublasGetAtomicsMode(Handle, int* mode) { return give(mode, 0); }
SNUG_ENTRY int cublasGetStream_v2(Handle, Handle* stream) { return give(stream, nullptr); }
SNUG_ENTRY int cublasGetSmCountTarget(Handle, int* count) { return give(count, 0); }
SNUG_ENTRY const char* cublasGetStatusString(int status) {
  return status == kSuccess ? "success" : "not supported by the null device";
}
SNUG_ENTRY const char* cublasGetStatusName(int status) {
  return status == kSuccess ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_NOT_SUPPORTED";
}
SNUG_ENTRY size_t cublasLtGetVersion() { return 130000; }
SNUG_ENTRY size_t cublasLtGetCudartVersion() { return 13000; }
SNUG_ENTRY int cublasLtCreate(Handle* context) { return give(context, new_handle()); }
SNUG_ENTRY int cublasLtMatmulDescCreate(Handle* description, int, int) { return give(description, new_handle()); }
SNUG_ENTRY int cublasLtMatrixLayoutCreate(Handle* layout, int, uint64_t, uint64_t, int64_t) {
  return give(layout, new_handle());
}
SNUG_ENTRY int cublasLtMatmulPreferenceCreate(Handle* preference) { return give(preference, new_handle()); }
SNUG_ENTRY int cublasLtMatrixTransformDescCreate(Handle* description, int) { return give(description, new_handle()); }
// The one algorithm there is: no workspace of its own. PyTorch allocates its workspace before it asks.
// NOLINTNEXTLINE(readability-function-size): the interface's parameters
SNUG_ENTRY int cublasLtMatmulAlgoGetHeuristic(Handle, Handle, Handle, Handle, Handle, Handle, Handle, int wanted,
                                              Heuristic* results, int* found) {
  if (results == nullptr || wanted < 1) return give(found, 0);
  results[0] = Heuristic{};
  return give(found, 1);
}
// NOLINTNEXTLINE(readability-function-size): the interface's parameters
SNUG_ENTRY int cublasLtMatmulAlgoInit(Handle, int, int, int, int, int, int, int, void* algorithm) {
  std::memset(algorithm, 0, sizeof(Heuristic::algorithm));
  return kSuccess;
}

}  // namespace snug::null_device
