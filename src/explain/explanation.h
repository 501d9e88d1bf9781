#pragma once
// The whole answer for one file of text: what ran out and why, what the program was doing, where, and what to change. Puts
// the readers of torch/ and the rules of cause.h and advice.h together; prints nothing.

#include <optional>
#include <string>
#include <vector>

#include "explain/advice.h"
#include "explain/cause.h"
#include "explain/filler.h"
#include "torch/memory_summary.h"
#include "torch/oom_log.h"
#include "torch/traceback.h"

namespace snug {

struct Explanation {
  OomLog log;
  Diagnosis diagnosis;
  StageFound stage;
  Filler filler = Filler::none;  // of a shortage, as far as the frames tell
  std::optional<Frame> own;      // the innermost frame of the user's code
  std::optional<Frame> caller;   // … or of a library on top of PyTorch
  std::vector<Advice> advice;
  std::optional<MemorySummary> summary;  // printed in the same log
};

// None if the log holds no message.
std::optional<Explanation> explain_log(OomLog log);

// What a summary alone tells: an answer, the sums, what to look at.
Diagnosis diagnose(const MemorySummary& summary);

}  // namespace snug
