#pragma once
// snug explain --try: advice that is followed and tried on a null device.

#include <span>

namespace snug::cli {

// `words`: as of `snug measure`. The exit code: 0 if the program fits or one change is enough. Throws UsageError and Error.
int try_advice(std::span<char* const> words);

}  // namespace snug::cli
