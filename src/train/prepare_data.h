#pragma once
// Tokenizes and packs a dataset in a child process, so that its memory is gone before the arena is committed and never
// counts against the run.

#include "data/dataset.h"
#include "plan/plan.h"
#include "train/trainer.h"

namespace snug {

// What the plan's recipe says of its training data; where it is written is left open.
DatasetRequest dataset_request(const Plan& plan);

// The recipe's data to train and to evaluate on, in output/dataset/train and output/dataset/eval. Throws Error.
void prepare_datasets(const Plan& plan, const std::filesystem::path& output, Reporter& reporter);

// `tokenizer`: the model's directory, also for its chat template unless the request names another. Throws Error with the
// child's message; the lines about bad rows come through request.complain before.
DatasetSummary prepare_in_child(const DatasetRequest& request, const std::filesystem::path& tokenizer);

}  // namespace snug
