#pragma once
// The catalogue of accelerators as a table, and all about one.

#include <string>

#include "plan/accelerators.h"

namespace snug {

// Vendor by vendor.
std::string accelerators_text();
std::string accelerators_json();

std::string accelerator_text(const Accelerator& accelerator);
std::string accelerator_json(const Accelerator& accelerator);

}  // namespace snug
