#pragma once
// `snug plan --max-memory`: which part of the model on which device.

#include <string>
#include <vector>

#include "ask/arguments.h"

namespace snug {

// The command's own flags that only the device map reads, as parse_arguments takes them.
std::vector<std::string> device_flags();

// Prints; the exit code.
int plan_devices(const Arguments& arguments, Asker& asker);

}  // namespace snug
