#pragma once
// Writes one safetensors file as a stream: the tensors are named beforehand, their bytes follow in chunks of any size, and
// nothing is held back in memory. The order and padding are those of the reference writer.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "formats/checksum.h"
#include "formats/file.h"
#include "formats/safetensors_header.h"

namespace snug {

struct TensorToWrite {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
};

// Whether a writer makes the file, or joins the one who did with the same tensors.
enum class Opening : uint8_t { create, join };

// What safetensors' own writers put into the header.
inline const std::map<std::string, std::string> kSafetensorsMetadata = {{"format", "pt"}};

class SafetensorsWriter {
 public:
  // Creates `path` and writes the header, or joins. Throws Error: two tensors of one name, a size out of range, or what the
  // system says.
  SafetensorsWriter(std::filesystem::path path, std::vector<TensorToWrite> tensors,
                    const std::map<std::string, std::string>& metadata = kSafetensorsMetadata,
                    Opening opening = Opening::create);

  // The tensors in the order in which their bytes must come: widest dtype first, then by name.
  std::span<const TensorEntry> order() const { return tensors_; }

  // Where each tensor of order() stood in the list that was given.
  std::span<const size_t> given() const { return given_; }

  // The next bytes, little-endian and row-major; a chunk may end anywhere, also beyond one tensor. Throws Error if there are
  // more than the tensors hold.
  void write(std::span<const std::byte> bytes);

  // Bytes of one tensor of order() from byte `begin` of it on, whatever was written before: for who learns a tensor's bytes
  // together with another's. The file then ends with close(), since a sum needs its bytes in order. Each byte once.
  void write_at(const TensorEntry& tensor, int64_t begin, std::span<const std::byte> bytes);

  // Flushes to the disk. Throws Error if bytes are missing.
  void close();

  // Bytes of tensors that this writer has written.
  int64_t written() const { return written_; }
  // Flushes what this writer wrote, which together with the others wrote so many. Throws Error if bytes are missing.
  void close_joined(int64_t all_written);

  // The same for a file that was written in order. Size and checksum of the whole file.
  FileSum finish();

  int64_t file_bytes() const { return header_bytes_ + data_bytes_; }

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
  Checksum checksum_;
  std::vector<TensorEntry> tensors_;
  std::vector<size_t> given_;
  int64_t header_bytes_ = 0;
  int64_t data_bytes_ = 0;  // of all tensors
  int64_t written_ = 0;     // of data_bytes_
};

// Bytes that the file of these tensors will have. For planning disk space.
int64_t safetensors_file_bytes(std::vector<TensorToWrite> tensors,
                               const std::map<std::string, std::string>& metadata = kSafetensorsMetadata);

}  // namespace snug
