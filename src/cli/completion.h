#pragma once
// What shells offer for Tab, as a script for each, made from the tables of commands, flags, keys, models and accelerators.

#include <string>

namespace snug::cli {

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

}  // namespace snug::cli
