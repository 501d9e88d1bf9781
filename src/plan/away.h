#pragma once
// What lies away from the device, and what a step moves between there and the device.

#include <array>
#include <cstdint>

#include "plan/layout.h"
#include "program/program.h"

namespace snug {

struct Away {
  std::array<int64_t, kRoleCount> bytes{};  // when most lies there, by role
  int64_t fetched = 0, sent = 0;            // bytes a step
};
Away away_of(const Program& program, const Layout& layout);

}  // namespace snug
