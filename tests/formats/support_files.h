#pragma once
// A scratch directory and small helpers for tests that touch the disk.

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "temporary_directory.h"

namespace snug {

using Scratch = test::TemporaryDirectory;

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void put(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// The message of the Error that `action` throws; "accepted" if it throws none.
template <class Action>
std::string refusal_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

inline ::testing::AssertionResult says(const std::string& message, const std::string& part) {
  if (message.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << message << "' does not say '" << part << "'";
}

inline const std::filesystem::path kGolden = SNUG_SOURCE_DIR "/tests/golden/formats";

}  // namespace snug
