// Versions and errors: the runtime's version is that of the library which the program brought along; the driver is as new as
// any.

#include <dlfcn.h>

#include <array>

#include "measure/null_device/entry.h"

namespace snug::null_device {

namespace {

constexpr int kDriverVersion = 13030;

struct ErrorWords {
  int error;
  const char* name;
  const char* text;
};

// PyTorch tells what happened by these texts.
constexpr std::array kErrors{ErrorWords{kSuccess, "cudaSuccess", "no error"},
                             ErrorWords{kInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
                             ErrorWords{kOutOfMemory, "cudaErrorMemoryAllocation", "out of memory"},
                             ErrorWords{kInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
                             ErrorWords{100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
                             ErrorWords{kNotFound, "cudaErrorSymbolNotFound", "named symbol not found"},
                             ErrorWords{kNotSupported, "cudaErrorNotSupported",
                                        "operation not supported: snug's null device does not have this function"}};

const ErrorWords& words_of(int error) {
  static constexpr ErrorWords kOther{999, "cudaErrorUnknown", "unknown error"};
  for (const ErrorWords& words : kErrors)
    if (words.error == error) return words;
  return kOther;
}

int runtime_version() {
  for (const char* name : {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"}) {
    void* const library = ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    int version = 0;
    const auto ask = reinterpret_cast<int (*)(int*)>(::dlsym(library, "cudaRuntimeGetVersion"));
    if (ask != nullptr && ask(&version) == kSuccess && version > 0) return version;
  }
  return kDriverVersion;
}

}  // namespace

SNUG_ENTRY int cudaRuntimeGetVersion(int* version) {
  static const int found = runtime_version();
  return give(version, found);
}
SNUG_ENTRY int cudaDriverGetVersion(int* version) { return give(version, kDriverVersion); }
SNUG_ENTRY int cuDriverGetVersion(int* version) { return give(version, kDriverVersion); }
SNUG_ENTRY const char* cudaGetErrorName(int error) { return words_of(error).name; }
SNUG_ENTRY const char* cudaGetErrorString(int error) { return words_of(error).text; }
SNUG_ENTRY int cuGetErrorName(int error, const char** text) { return give(text, words_of(error).name); }
SNUG_ENTRY int cuGetErrorString(int error, const char** text) { return give(text, words_of(error).text); }

}  // namespace snug::null_device
