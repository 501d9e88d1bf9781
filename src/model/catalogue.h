#pragma once
// The models that `snug plan` knows by name, so that a plan needs no download: the lines of models.txt, which is part of the
// program. A line holds what the published config.json says and is read as such. Knows nothing of recipes or weights.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/model_spec.h"

namespace snug {

// The published model called `name`: "meta-llama/Llama-3.1-8B", with or without the owner, upper or lower case. Else the one
// that the name is a copy of, by its end: under another owner, of another date, a chat model of the same shape, or quantized
// by bitsandbytes ("unsloth/llama-3-8b-bnb-4bit", whose spec then says so).
std::optional<ModelSpec> find_model(std::string_view name);

// The catalogue name of the model that a name of somebody's own tells of ("philschmid/llama-3-1-8b-math", of Llama-3.1-8B);
// "" if it tells of none, or of one of another shape. A guess that must be said.
std::string model_within(std::string_view name);

// A model of the catalogue whose weights somebody stored in fewer bits, as a name says it: "TheBloke/Llama-2-7B-GPTQ".
struct QuantizedCopy {
  std::string base;  // the catalogue's name
  std::string form;  // "GPTQ", "AWQ", "FP8" …
};

// What such a name tells of; none where it tells of no model, or of no form that trainers load. A guess that must be said.
std::optional<QuantizedCopy> quantized_copy(std::string_view name);

// The catalogue's full names, in its order.
std::vector<std::string> model_names();

// The catalogue name that may have been meant by `name`; "" if none is like it.
std::string nearest_model_name(std::string_view name);

// `argument`: a directory that holds a config.json, a config.json, a catalogue name, or a repository that is in Hugging
// Face's cache. Throws Error naming the nearest name.
ModelSpec resolve_model(const std::string& argument);

}  // namespace snug
