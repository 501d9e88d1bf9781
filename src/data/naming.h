#pragma once
// Errors of readers that do not know which file they read: whoever does adds its name.

#include <string>

#include "base/error.h"

namespace snug {

// What `action` gives. An Error without a place gets `where`.
template <typename Action>
auto naming(const std::string& where, const Action& action) {
  try {
    return action();
  } catch (const Error& error) {
    throw Error(error.problem(), error.where().empty() ? where : error.where(), error.mend());
  }
}

}  // namespace snug
