#pragma once
// snug plan --megatron FILE: what ranks of a Megatron-LM run hold between steps.

#include <string>
#include <vector>

#include "cli/arguments.h"

namespace snug::cli {

std::vector<std::string> megatron_plan_flags();
int plan_megatron(const Arguments& arguments);

}  // namespace snug::cli
