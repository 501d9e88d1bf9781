#pragma once
// What a plan is made for: --gpu NAME, or this machine.

#include <string>

#include "ask/arguments.h"
#include "plan/target.h"

namespace snug {

// With the rates of its catalogue row, or of the kept probe and receipts of this model's runs; where --gpus-per-node says
// where links end, as far as that. Throws Error naming the
// nearest accelerator.
Target target_for(const Arguments& arguments);
// The same where so many of the ranks run on this machine; above: all of them.
Target target_for(const Arguments& arguments, int64_t ranks_here);

// The same with the room that output_dir's disk has.
Target with_disk(Target target, const Recipe& recipe);

// The receipts' word for the recipe's method: "full", "lora" or "qlora".
std::string method_word(const Recipe& recipe);

}  // namespace snug
