#pragma once
// What the names of data files say: of which kind they are, and which part of what. For this room alone.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

// ".parquet", ".jsonl.gz", …; empty for what is no data file.
std::string_view ending_of(std::string_view name);

// What a name says of its place among others: "train-00001-of-00003.parquet" is part 1 of 3 of "train".
struct PartName {
  std::string stem;
  int64_t part = -1, parts = 0;
};

PartName part_of(const std::string& name);

// Throws Error if the names of some files (at least one) tell that others are missing.
void require_all_parts(const std::vector<std::filesystem::path>& files);

}  // namespace snug
