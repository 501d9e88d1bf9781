#pragma once
// The shell script that starts a Python script: what that leaves to its command line stands there.

#include <optional>

#include "recipe/dialects/document.h"

namespace snug::dialects {

// Of the shell scripts of its project that start this Python script the one that says its model, or the first of several
// that say the same; none where there is none, or they train different models. It notes which it is.
std::optional<Document> started_by(const Document& script);

}  // namespace snug::dialects
