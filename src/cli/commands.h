#pragma once
// The commands, one file each. Each returns the exit code; errors are thrown.

#include <span>

namespace snug::cli {

int plan_command(std::span<char* const> words);
int fit_command(std::span<char* const> words);
int explain_command(std::span<char* const> words);
int measure_command(std::span<char* const> words);
int watch_command(std::span<char* const> words);
int probe_command(std::span<char* const> words);
int data_command(std::span<char* const> words);
int train_command(std::span<char* const> words);
int generate_command(std::span<char* const> words);
int merge_command(std::span<char* const> words);
int quantize_command(std::span<char* const> words);
int export_command(std::span<char* const> words);
int init_command(std::span<char* const> words);
int models_command(std::span<char* const> words);
int gpus_command(std::span<char* const> words);
int completion_command(std::span<char* const> words);
int help_command(std::span<char* const> words);

}  // namespace snug::cli
