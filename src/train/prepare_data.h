#pragma once
// Tokenizes and packs a dataset in a child process, so that its memory is gone before the arena is committed and never
// counts against the run.

#include "data/dataset.h"
#include "plan/plan.h"

namespace snug {

// What the plan's recipe says of its training data; where it is written is left open.
DatasetRequest dataset_request(const Plan& plan);

// `tokenizer`: the model's directory, also for its chat template unless the request names another. Throws Error with the
// child's message; the lines about bad rows come through request.complain before.
DatasetSummary prepare_in_child(const DatasetRequest& request, const std::filesystem::path& tokenizer);

}  // namespace snug
