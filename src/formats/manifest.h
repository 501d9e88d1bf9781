#pragma once
// `snug.json`: what a checkpoint directory holds, with the size and checksum of each file, and the few numbers that resuming
// needs. Written last, so that a directory with a manifest is complete.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <variant>

#include "formats/checksum.h"

namespace snug {

inline constexpr const char* kManifestName = "snug.json";

using StateValue = std::variant<int64_t, double, std::string>;

struct Manifest {
  std::string version;                      // of the snug that wrote it
  int64_t step = 0;                         // optimizer steps done
  std::map<std::string, FileSum> files;     // file name → size and checksum
  std::map<std::string, StateValue> state;  // free; doubles are kept to the last bit

  // The value, or Error naming the key and the file it is missing from.
  int64_t integer(const std::string& key) const;
  double number(const std::string& key) const;
  std::string text(const std::string& key) const;
};

// Writes `directory`/snug.json. Throws Error (a number that is not finite, or what the system says).
void write_manifest(const std::filesystem::path& directory, const Manifest& manifest);

// Throws Error: missing, damaged, or of a newer format.
Manifest read_manifest(const std::filesystem::path& directory);
Manifest parse_manifest(std::string_view json, const std::string& where);

// Reads the manifest and every file it names; throws Error naming the first that is missing or damaged.
Manifest verify_manifest(const std::filesystem::path& directory);

}  // namespace snug
