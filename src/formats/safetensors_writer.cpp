#include "formats/safetensors_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace snug {

namespace {

void check(const TensorToWrite& tensor, const std::string& where) {
  if (std::any_of(tensor.shape.begin(), tensor.shape.end(), [](int64_t dimension) { return dimension < 0; }))
    throw Error(fmt::format("tensor '{}' has a negative dimension", tensor.name), where);
  if (tensor.name == "__metadata__") throw Error("'__metadata__' cannot name a tensor", where);
}

void refuse_twins(const std::vector<TensorToWrite>& tensors, const std::string& where) {
  std::vector<std::string_view> names;
  for (const TensorToWrite& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw Error(fmt::format("tensor '{}' is given twice", *twice), where);
}

struct FileOrder {
  std::vector<TensorEntry> entries;
  std::vector<size_t> given;
};

// Widest dtype first, then by name; offsets from the start of the data.
FileOrder in_file_order(std::vector<TensorToWrite> tensors, const std::string& where) {
  for (const TensorToWrite& tensor : tensors) check(tensor, where);
  refuse_twins(tensors, where);
  FileOrder order;
  order.given.resize(tensors.size());
  std::iota(order.given.begin(), order.given.end(), size_t{0});
  std::sort(order.given.begin(), order.given.end(), [&](size_t a, size_t b) {
    const int rank_a = stored_type_of(tensors[a].dtype).rank, rank_b = stored_type_of(tensors[b].dtype).rank;
    return rank_a != rank_b ? rank_a > rank_b : tensors[a].name < tensors[b].name;
  });
  order.entries.reserve(tensors.size());
  int64_t offset = 0;
  for (const size_t index : order.given) {
    TensorToWrite& tensor = tensors[index];
    TensorEntry entry{
        .name = std::move(tensor.name), .stored = &stored_type_of(tensor.dtype), .shape = std::move(tensor.shape)};
    entry.bytes = checked_mul(entry.elements(), size_of(tensor.dtype));
    entry.offset = offset;
    offset = checked_add(offset, entry.bytes);
    order.entries.push_back(std::move(entry));
  }
  return order;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::filesystem::path path, std::vector<TensorToWrite> tensors,
                                     const std::map<std::string, std::string>& metadata, Opening opening)
    : path_(std::move(path)) {
  FileOrder order = in_file_order(std::move(tensors), path_.string());
  tensors_ = std::move(order.entries);
  given_ = std::move(order.given);
  const std::string header = format_safetensors_header(tensors_, metadata);
  const auto length = static_cast<int64_t>(header.size());
  if (length > kLargestSafetensorsHeader)
    throw Error(fmt::format("a header of {} bytes is too long", length), path_.string());
  for (const TensorEntry& entry : tensors_) data_bytes_ += entry.bytes;  // checked above
  header_bytes_ = 8 + length;
  for (TensorEntry& entry : tensors_) entry.offset += header_bytes_;  // in the file from here on
  fd_ = opening == Opening::create ? open_to_write(path_) : open_to_update(path_);
  if (opening == Opening::join) return;
  const auto prefix = std::bit_cast<std::array<std::byte, 8>>(static_cast<uint64_t>(length));
  for (const std::span<const std::byte> part : {std::span<const std::byte>(prefix), std::as_bytes(std::span(header))}) {
    write_all(fd_.get(), part, path_);
    checksum_.update(part);
  }
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  const auto count = static_cast<int64_t>(bytes.size());
  if (!fd_) throw Error("the file is already finished", path_.string());
  if (count > data_bytes_ - written_) {
    throw Error(fmt::format("{} bytes more than the {} of the tensors", count - (data_bytes_ - written_), data_bytes_),
                path_.string());
  }
  write_all(fd_.get(), bytes, path_);
  checksum_.update(bytes);
  written_ += count;
}

void SafetensorsWriter::write_at(const TensorEntry& tensor, int64_t begin, std::span<const std::byte> bytes) {
  const auto count = static_cast<int64_t>(bytes.size());
  if (!fd_) throw Error("the file is already finished", path_.string());
  if (begin < 0 || begin > tensor.bytes || count > tensor.bytes - begin)
    throw Error(fmt::format("bytes beyond tensor '{}'", tensor.name), path_.string());
  snug::write_at(fd_.get(), tensor.offset + begin, bytes, path_);
  written_ += count;
}

void SafetensorsWriter::close() { close_joined(written_); }

void SafetensorsWriter::close_joined(int64_t all_written) {
  if (all_written != data_bytes_) {
    throw Error(fmt::format("{} of {} bytes were written", all_written, data_bytes_), path_.string());
  }
  sync_file(fd_.get(), path_);
  fd_.reset();
}

FileSum SafetensorsWriter::finish() {
  close();
  return {file_bytes(), checksum_.value()};
}

int64_t safetensors_file_bytes(std::vector<TensorToWrite> tensors, const std::map<std::string, std::string>& metadata) {
  const std::vector<TensorEntry> entries = in_file_order(std::move(tensors), "").entries;
  int64_t bytes = 8 + static_cast<int64_t>(format_safetensors_header(entries, metadata).size());
  for (const TensorEntry& entry : entries) bytes = checked_add(bytes, entry.bytes);
  return bytes;
}

}  // namespace snug
