#pragma once
// A plan as one web page that needs no network: the summary, memory over the ops, the arena. The page itself is web/plan/;
// here its data are written. Names from outside stand in it as JSON without '<', so that nothing in them is markup.

#include <string>
#include <vector>

#include "plan/plan.h"

namespace snug {

// `keys_set`: recipe keys that the user gave; the others are shown as assumed.
std::string plan_html(const Plan& plan, const std::vector<std::string>& keys_set);

}  // namespace snug
