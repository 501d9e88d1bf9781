#include "kernels/backend.h"

#include <dlfcn.h>

#include "base/error.h"

namespace snug::kernels {

const Backend& open_backend(const std::string& path) {
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) throw Error(dlerror(), path, "name a backend's shared object");
  void* const found = dlsym(module, "snug_backend");
  if (found == nullptr) throw Error("is no backend: it exports no snug_backend", path);
  const auto& backend = *static_cast<const Backend*>(found);
  if (backend.version != kBackendVersion)
    throw Error("was made for version " + std::to_string(backend.version) + " of backends, this is " +
                    std::to_string(kBackendVersion),
                path, "build it again");
  return backend;
}

void require(const Backend& backend, const OpView& op) {
  const Kernel* const kernel = backend.kernel(op.kind);
  const char* const missing = kernel == nullptr            ? name_of(op.kind)
                              : kernel->missing == nullptr ? nullptr
                                                           : kernel->missing(op);
  if (missing != nullptr)
    throw Error(std::string(missing) + " cannot run on " + backend.name() + " yet", "", "plan it instead");
}

}  // namespace snug::kernels
