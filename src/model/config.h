#pragma once
// Reads a Hugging Face `config.json` into a ModelSpec. Fields that would change the mathematics and are not understood are
// refused by name; fields known to be harmless are passed over.

#include <filesystem>
#include <string_view>

#include "model/model_spec.h"

namespace snug {

// `json`: the text of a config.json; `where`: its name for messages. Throws Error naming the field and the fix.
ModelSpec parse_config(std::string_view json, const std::string& where);

// `path`: a config.json or a directory that holds one.
ModelSpec read_config(const std::filesystem::path& path);

// The text of a config.json that reads back as `spec`, with weights of `dtype` that are not quantized.
std::string format_config(const ModelSpec& spec, DType dtype);

}  // namespace snug
