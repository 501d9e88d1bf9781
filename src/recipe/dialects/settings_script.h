#pragma once
// The Python script that reads a file of settings: what the file leaves open stands there.

#include <optional>

#include "recipe/dialects/document.h"

namespace snug::dialects {

// Whether settings in somebody's own words, read by the Trainer's names, leave to their script how the model is trained:
// neither an adapter nor bits nor "full".
bool leaves_method_open(const Document& settings);
// … and in which precision.
bool leaves_precision_open(const Document& settings);

// Settings by the Trainer's names that name no model, or leave the method open, with what the script says beside them: of
// scripts near the file the one that speaks of it by its name, the one that a shell script near it hands it to, or the only
// one beside it that trains. The file's own values hold. Without a script, settings that name no model are read with the
// "model.yaml" beside them. None where there is neither, or where several scripts train different models, or it trains
// another model.
std::optional<Document> with_its_script(Document settings);

}  // namespace snug::dialects
