#pragma once
// Settings files of scripts that are nobody's but their authors': "model: {name: …}", "training: {batch_size: 4}".

#include <optional>

#include "recipe/dialects/document.h"

namespace snug::dialects {

// The same settings by the names of Hugging Face's Trainer, where the file names a model and trains by names of its own;
// what has no such name keeps its own. Spans stay those of the file, in which nothing can be written by these names.
// `trains`: something says that the file is of a training, whatever few names it has.
std::optional<Document> by_trainers_names(const Document& document, bool trains = false);

// Whether flags or keys among the Trainer's are the author's own: "--micro_batch_size 4 --cutoff_len 512".
bool mixes_in_own_words(const Document& document);

}  // namespace snug::dialects
