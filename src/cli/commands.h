#pragma once
// The commands, one file each. Each returns the exit code; errors are thrown.

#include <span>

namespace snug::cli {

int plan_command(std::span<char* const> arguments);
int train_command(std::span<char* const> arguments);
int init_command(std::span<char* const> arguments);
int models_command(std::span<char* const> arguments);
int help_command(std::span<char* const> arguments);

}  // namespace snug::cli
