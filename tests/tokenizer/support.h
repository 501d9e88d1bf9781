#pragma once
// What tests of tokenizers and data share: temporary directories, small tokenizers, refusals.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "temporary_directory.h"
#include "tokenizer/tokenizer.h"

namespace snug::test {

inline std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(SNUG_SOURCE_DIR) / "tests" / "golden" / "tokenizer" / name;
}

// Where the published tokenizers lie, if this machine has them.
inline std::filesystem::path shared_tokenizers() {
  const char* given = std::getenv("SNUG_SHARED");
  const std::filesystem::path shared = given != nullptr ? given : std::filesystem::path(SNUG_SOURCE_DIR) / ".." / "shared";
  return shared / "data" / "tokenizers";
}

// A tokenizer.json of 256 bytes (id = byte + 2), "<s>" 0 and "</s>" 1, without merges: one token a byte. `change` replaces
// the component of that name.
std::string byte_tokenizer_json(const std::string& component = {}, const std::string& value = {});

inline Tokenizer byte_tokenizer() { return Tokenizer::parse(byte_tokenizer_json(), "bytes"); }

// The message of the Error that `action` throws; empty if it throws none.
template <typename F>
std::string refusal(const F& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline void expect_mentions(const std::string& message, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(message.find(part), std::string::npos) << '"' << message << "\" lacks " << part;
}

}  // namespace snug::test
