#pragma once
// Keys of how the learning rate rises and falls.

#include <optional>
#include <string_view>
#include <vector>

#include "recipe/keys.h"

namespace snug {

std::vector<Key> schedule_keys();
// Throws Error where the warm-up or an argument has no meaning for the schedule, or one that it needs is missing.
void validate_schedule(const Recipe& recipe);

// Of lr_scheduler_kwargs; none if it is not given.
std::optional<double> schedule_argument(const Recipe& recipe, std::string_view name);

}  // namespace snug
