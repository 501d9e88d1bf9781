#pragma once
// A Program as text, for review: a refactoring must leave it identical.

#include <string>

#include "program/program.h"

namespace snug {

std::string dump(const Program& program);

}  // namespace snug
