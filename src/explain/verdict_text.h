#pragma once
// A verdict in words: what ran out in one line, and the sums behind it.

#include <string>
#include <vector>

#include "explain/verdict.h"

namespace snug {

// "GPU 0 is full: …". `asked`: bytes of the request that failed.
std::string answer_of(const Verdict& verdict, int device, int64_t asked);

// "without what earlier rounds left it would have needed 3.10 GiB of 4.00 GiB: enough".
std::vector<std::string> counterfactual_lines(const Verdict& verdict);

}  // namespace snug
