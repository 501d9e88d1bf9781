#pragma once
// The two files of a prepared dataset, little-endian as the machine writes them:
//   tokens.bin  TokenHeader, then one int32 a token in the order of the documents; kLabelBit is set if the token is a label
//   rows.bin    RowHeader, RowRecord [rows] in the order of their buckets, DocumentRecord [documents] in the order of the
//   rows
// Both carry the same stamp, so that files of two runs are never read as one. For this room alone.

#include <array>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <span>

#include "data/dataset.h"

namespace snug {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint32_t kLabelBit = 0x80000000U;
inline constexpr int32_t kDatasetVersion = 2;
inline constexpr int64_t kMaxSeqLen = int64_t{1} << 24;
inline constexpr std::array<char, 8> kTokenMagic = {'s', 'n', 'u', 'g', 't', 'o', 'k', 's'};
inline constexpr std::array<char, 8> kRowMagic = {'s', 'n', 'u', 'g', 'r', 'o', 'w', 's'};

struct TokenHeader {
  std::array<char, 8> magic = kTokenMagic;
  int32_t version = kDatasetVersion;
  int32_t highest_token = -1;
  int64_t tokens = 0;
  uint64_t stamp = 0;
};
static_assert(sizeof(TokenHeader) == 32);

struct RowHeader {
  std::array<char, 8> magic = kRowMagic;
  int32_t version = kDatasetVersion;
  int32_t most_documents = 0;  // in one row
  uint64_t stamp = 0;
  int64_t file_tokens = 0;  // of the token file, which a held-out part may share
  DatasetSummary summary;
};

struct RowRecord {
  int64_t first_document = 0;
  int32_t documents = 0, tokens = 0;
  int32_t labels = 0;   // LossNormalization::unshifted
  int32_t targets = 0;  // LossNormalization::targets
};
static_assert(sizeof(RowRecord) == 24);

struct DocumentRecord {
  int64_t first_token = 0;
  int32_t tokens = 0;
  int32_t reserved = 0;
};
static_assert(sizeof(DocumentRecord) == 16);

inline std::filesystem::path token_file(const std::filesystem::path& directory) { return directory / "tokens.bin"; }
inline std::filesystem::path row_file(const std::filesystem::path& directory) { return directory / "rows.bin"; }

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <typename T>
std::span<std::byte> writable_bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace snug
