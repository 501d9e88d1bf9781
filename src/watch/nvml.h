#pragma once
// NVIDIA's management library, opened at run time: it comes with the driver, and nothing is needed to build against it.
// Names and structures: nvml.h, which keeps them for old programs.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "watch/sample.h"

namespace snug {

class Nvml {
  struct Functions;
  struct Token {};  // only open() makes one
  struct Unload {
    void operator()(void* library) const;
  };

 public:
  // None where there is no driver, or it does not answer; `reason` then says which.
  static std::unique_ptr<Nvml> open(std::string& reason);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  int devices() const { return devices_; }

  // Memory of the device and of the processes that compute on it. Throws Error with the driver's own words.
  MemorySample sample(int device) const;

  Nvml(Token, std::unique_ptr<void, Unload> library, std::unique_ptr<Functions> functions, int devices);

 private:
  std::unique_ptr<void, Unload> library_;
  std::unique_ptr<Functions> functions_;
  int devices_;
};

}  // namespace snug
