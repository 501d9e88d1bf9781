#pragma once
// A Python script that trains in a loop of its own: what that says in place of a trainer's settings.

#include "recipe/dialects/document.h"
#include "recipe/dialects/python_entries.h"
#include "recipe/dialects/python_script.h"

namespace snug::dialects {

// Batches, accumulation, types and optimizer, by the calls that make them.
void take_loop(PythonScript& script, Document& document, Entries& entries);

// A LoRA of the script's own around weights that it freezes: its rank, by the usual names.
void take_own_lora(PythonScript& script, Document& document, Entries& entries);

}  // namespace snug::dialects
