#pragma once
// Tokenizes and packs a dataset in a child process, so that its memory is gone before the arena is committed and never
// counts against the run.

#include "data/dataset.h"

namespace snug {

// `tokenizer`: the model's directory. Throws Error with the child's message.
DatasetSummary prepare_in_child(const DatasetRequest& request, const std::filesystem::path& tokenizer);

}  // namespace snug
