#pragma once
// Settings files of scripts that are nobody's but their authors': "model: {name: …}", "training: {batch_size: 4}".

#include <array>
#include <optional>
#include <string_view>

#include "recipe/dialects/document.h"

namespace snug::dialects {

// Keys by the Trainer's names of which a reader must be told when only Python knows their value.
inline constexpr auto kMatter = std::to_array<std::string_view>({"model_name_or_path",
                                                                 "per_device_train_batch_size",
                                                                 "gradient_accumulation_steps",
                                                                 "max_seq_length",
                                                                 "max_length",
                                                                 "lora_r",
                                                                 "lora_alpha",
                                                                 "lora_target_modules",
                                                                 "modules_to_save",
                                                                 "use_dora",
                                                                 "load_in_4bit",
                                                                 "load_in_8bit",
                                                                 "torch_dtype",
                                                                 "dtype",
                                                                 "optim",
                                                                 "bf16",
                                                                 "fp16",
                                                                 "gradient_checkpointing",
                                                                 "use_gradient_checkpointing",
                                                                 "packing",
                                                                 "deepspeed",
                                                                 "fsdp"});

// The same settings by the names of Hugging Face's Trainer, where the file names a model and trains by names of its own;
// what has no such name keeps its own. Spans stay those of the file, in which nothing can be written by these names.
// `trains`: something says that the file is of a training, whatever few names it has.
std::optional<Document> by_trainers_names(const Document& document, bool trains = false);

// Whether flags or keys among the Trainer's are the author's own: "--micro_batch_size 4 --cutoff_len 512".
bool mixes_in_own_words(const Document& document);

}  // namespace snug::dialects
