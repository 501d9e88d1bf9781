#pragma once
// Models that are no decoders of text, by their names: what to say where one is asked for.

#include <string_view>

namespace snug {

// "an encoder-decoder" of google/flan-t5-xl, "an encoder" of bert-base-uncased, "a recurrent model" of mamba, "a model of
// images", "a model of sound"; "" of names that say nothing of the kind.
std::string_view other_kind(std::string_view name);

}  // namespace snug
