#pragma once
// The Python script that a shell script starts: its own parser, defaults and calls say what the flags do.

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "recipe/dialects/document.h"
#include "recipe/dialects/python_flags.h"

namespace snug::dialects {

// Keys of a recipe whose value is that of a flag: "lora_r", "lora_rank".
using FlagsOfKeys = std::map<std::string, std::string>;

struct StartedPython {
  Document document;
  FlagsOfKeys flags;
};

// A Python script with what a command gives it. Throws Error where nothing in it trains.
StartedPython read_started_python(std::string_view text, const std::string& where, PythonFlags& flags);

// Reads the script that the command of `shell` starts, where it lies beside it by this path or by its name, and puts what it
// makes of the flags in their place. What is not there, or does not train, is left alone. `config`: the file of keys that
// the command handed on, whose keys stand among the entries already; "" for none.
void read_started(const std::filesystem::path& script, const std::string& config, Document& shell);

}  // namespace snug::dialects
