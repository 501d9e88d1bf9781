#pragma once
// A script that hands a file of keys to what it starts: the keys are read where they stand.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/dialects/document.h"
#include "recipe/dialects/shell_words.h"

namespace snug::dialects {

// The file of keys that the command of a script names, "--config train.yaml" or a bare word; "" for none.
std::string handed_on(const Document& script);

// Puts its keys before those of the command, which hold over them: from a file that the script writes itself, or one that
// lies beside it or in the working directory. What is not there, or is no file of keys, is left alone.
void read_handed_on(const std::vector<WrittenFile>& written, Document& script);

// The same of the settings that a launcher is given, "accelerate launch --config_file multi_gpu.yaml": as "launch.…".
void read_launcher_settings(const std::vector<WrittenFile>& written, Document& script);

// Keys before the document's own, which hold over them; nothing of theirs can be changed in it.
void put_before(Document keys, Document& document);

// Of a word among Hydra's defaults, "override /model", the group: "model".
std::string group_named(std::string_view word);

// A file of keys that goes on from another, "inherits: base.yaml", or that is put together ("defaults: - model: qwen3"): the
// other's keys come before its own, which hold over them, where that lies beside it, in a folder above or in the working
// directory. `chosen`: groups of Hydra's of which somebody has chosen the file, whatever an experiment says.
void read_inherited(Document& document, const std::set<std::string>& chosen = {});

}  // namespace snug::dialects
