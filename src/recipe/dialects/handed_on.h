#pragma once
// A script that hands a file of keys to what it starts: the keys are read where they stand.

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

// Of a word among Hydra's defaults, "override /model", the group: "model".
std::string group_named(std::string_view word);

// A file of keys that goes on from another, "inherits: base.yaml", or that is put together ("defaults: - model: qwen3"): the
// other's keys come before its own, which hold over them, where that lies beside it, in a folder above or in the working
// directory.
void read_inherited(Document& document);

}  // namespace snug::dialects
