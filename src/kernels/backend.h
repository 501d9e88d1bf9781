#pragma once
// A backend: what runs ops on one kind of device, as a table with an entry for each kind of op. `cpu` is built in; others
// are modules that are opened at run time (open_backend).

#include <cstdint>
#include <memory>
#include <string>

#include "op/view.h"

namespace snug::kernels {

// What a backend has made ahead for one run: primitives, their code. Whoever runs ops owns it.
class Session {
 public:
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  virtual ~Session() = default;
  // Distinct products made so far; each keeps a little memory outside any arena.
  virtual int64_t products() const { return 0; }
};

struct Kernel {
  // What of this op it cannot do, as a user would name it; null: nothing.
  const char* (*missing)(const OpView& op) = nullptr;
  // Makes what `run` will need, so that it allocates nothing; addresses are null. Throws Error if it cannot work within the
  // op's workspace. Null: nothing to make.
  void (*prepare)(Session& session, const OpView& op) = nullptr;
  void (*run)(Session& session, const OpView& op) = nullptr;
};

constexpr int32_t kBackendVersion = 1;  // of this header; a module made for another is not opened

struct Backend {
  int32_t version = kBackendVersion;
  std::string (*name)() = nullptr;  // "cpu avx3_spr, oneDNN 2.6.3"
  // Starts the threads that ops will use, with their stacks; call once before memory is counted.
  void (*start_threads)(int32_t threads) = nullptr;
  std::unique_ptr<Session> (*open)() = nullptr;
  const Kernel* (*kernel)(OpKind kind) = nullptr;  // null: it has none
};

// The backend of this build: `cpu`, or `none` in one that only plans.
const Backend& built_in_backend();

// Opens a module (a shared object that exports `snug_backend`) for the rest of the process. Throws Error if it cannot be
// opened, or was made for another version of snug.
const Backend& open_backend(const std::string& path);

// Throws Error, naming what of `op` the backend cannot do.
void require(const Backend& backend, const OpView& op);

}  // namespace snug::kernels
