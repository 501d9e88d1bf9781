#pragma once
// The rules of thumb of articles as a table for people and as JSON, beside the exact figures where there is a plan.

#include <string>

#include "advise/textbook.h"

namespace snug {

// `plan` may be null: a round count of parameters has none.
std::string textbook_text(const std::string& name, const TextbookQuestion& question, const Plan* plan);
std::string textbook_json(const TextbookQuestion& question, const Plan* plan);

}  // namespace snug
