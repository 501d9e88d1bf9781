#pragma once
// A Layout as text, for review.

#include <string>

#include "plan/layout.h"

namespace snug {

std::string dump(const Layout& layout, const Program& program);

}  // namespace snug
