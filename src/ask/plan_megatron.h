#pragma once
// snug plan --megatron FILE: what ranks of a Megatron-LM run hold between steps.

#include <string>
#include <vector>

#include "ask/arguments.h"

namespace snug {

std::vector<std::string> megatron_plan_flags();
int plan_megatron(const Arguments& arguments, Asker& asker);

}  // namespace snug
