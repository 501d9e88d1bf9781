#include "formats/gguf_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>

#include "base/checked.h"
#include "base/error.h"
#include "base/float16.h"
#include "formats/elements.h"

namespace snug {

namespace {

constexpr int64_t kAlignment = 32;
constexpr size_t kQ8Bytes = 2 + kQ8Block;

// Numbers of the format's value types.
enum ValueType : uint32_t { kUint32 = 4, kInt32 = 5, kFloat32 = 6, kBool = 7, kString = 8, kArray = 9 };

class Header {
 public:
  template <class Number>
  void number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& value) {
    number(static_cast<uint64_t>(value.size()));
    bytes_ += value;
  }
  void value(bool item) {
    number<uint32_t>(kBool);
    number<uint8_t>(item ? 1 : 0);
  }
  void value(uint32_t item) {
    number<uint32_t>(kUint32);
    number(item);
  }
  void value(float item) {
    number<uint32_t>(kFloat32);
    number(item);
  }
  void value(const std::string& item) {
    number<uint32_t>(kString);
    text(item);
  }
  void value(const std::vector<std::string>& items) {
    array(kString, items.size());
    for (const std::string& item : items) text(item);
  }
  void value(const std::vector<float>& items) {
    array(kFloat32, items.size());
    for (const float item : items) number(item);
  }
  void value(const std::vector<int32_t>& items) {
    array(kInt32, items.size());
    for (const int32_t item : items) number(item);
  }
  std::string& bytes() { return bytes_; }

 private:
  void array(ValueType type, size_t count) {
    number<uint32_t>(kArray);
    number<uint32_t>(type);
    number(static_cast<uint64_t>(count));
  }

  std::string bytes_;
};

void encode_q8(std::span<const float> values, std::span<std::byte> out) {
  for (size_t block = 0; block < values.size() / kQ8Block; ++block) {
    const std::span<const float> in = values.subspan(block * kQ8Block, kQ8Block);
    std::byte* to = out.data() + block * kQ8Bytes;
    float largest = 0.0F;
    for (const float value : in) largest = std::max(largest, std::abs(value));
    const float scale = largest / 127.0F;
    const float inverse = scale != 0.0F ? 1.0F / scale : 0.0F;
    const uint16_t half = f32_to_f16(scale);
    std::memcpy(to, &half, sizeof half);
    for (size_t i = 0; i < in.size(); ++i) {
      const float level = std::clamp(std::round(in[i] * inverse), -128.0F, 127.0F);
      to[2 + i] = static_cast<std::byte>(static_cast<int8_t>(level == level ? level : 0.0F));
    }
  }
}

std::string header_of(const GgufKeys& keys, const std::vector<GgufTensor>& tensors) {
  Header header;
  header.bytes() = "GGUF";
  header.number(uint32_t{3});
  header.number(static_cast<uint64_t>(tensors.size()));
  header.number(static_cast<uint64_t>(keys.size()));
  for (const auto& [key, value] : keys) {
    header.text(key);
    std::visit([&](const auto& item) { header.value(item); }, value);
  }
  int64_t offset = 0;
  for (const GgufTensor& tensor : tensors) {
    header.text(tensor.name);
    header.number(static_cast<uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) header.number(static_cast<uint64_t>(*size));
    header.number(static_cast<uint32_t>(tensor.type));
    header.number(static_cast<uint64_t>(offset));
    offset = checked_add(offset, align_up(tensor.bytes(), kAlignment));
  }
  return std::move(header.bytes());
}

template <class List, class Name>
void refuse_twins(const List& list, Name name, const std::filesystem::path& path) {
  std::set<std::string> seen;
  for (const auto& item : list)
    if (!seen.insert(name(item)).second) throw Error(fmt::format("'{}' would be there twice", name(item)), path.string());
}

}  // namespace

int64_t gguf_row_bytes(GgufType type, int64_t elements) {
  if (type == GgufType::f32) return checked_mul(elements, 4);
  if (type != GgufType::q8_0) return checked_mul(elements, 2);
  if (elements % kQ8Block != 0) throw Error("Q8_0 rows are whole blocks of 32");
  return checked_mul(elements / kQ8Block, static_cast<int64_t>(kQ8Bytes));
}

void encode_gguf(std::span<const float> values, GgufType type, std::span<std::byte> out) {
  if (type == GgufType::q8_0) return encode_q8(values, out);
  encode_elements(values, type == GgufType::f32 ? DType::f32 : type == GgufType::f16 ? DType::f16 : DType::bf16, out);
}

int64_t GgufTensor::bytes() const {
  if (shape.empty() || shape.size() > 4) throw Error(fmt::format("tensor '{}' has {} dimensions", name, shape.size()));
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows = checked_mul(rows, shape[i]);
  return checked_mul(rows, gguf_row_bytes(type, shape.back()));
}

GgufWriter::GgufWriter(std::filesystem::path path, const GgufKeys& keys, std::vector<GgufTensor> tensors)
    : path_(std::move(path)), tensors_(std::move(tensors)) {
  refuse_twins(
      keys, [](const auto& key) { return key.first; }, path_);
  refuse_twins(
      tensors_, [](const GgufTensor& tensor) { return tensor.name; }, path_);
  for (const GgufTensor& tensor : tensors_)
    if (tensor.name.size() >= 64)
      throw Error(fmt::format("the name '{}' is too long for GGUF", tensor.name), path_.string());
  const std::string header = header_of(keys, tensors_);
  fd_ = open_to_write(path_);
  write_all(fd_.get(), std::as_bytes(std::span(header)), path_);
  file_bytes_ = static_cast<int64_t>(header.size());
  pad(align_up(file_bytes_, kAlignment) - file_bytes_);
  skip_finished();
}

void GgufWriter::pad(int64_t bytes) {
  const std::array<std::byte, kAlignment> zeros{};
  write_all(fd_.get(), std::span(zeros).first(static_cast<size_t>(bytes)), path_);
  file_bytes_ += bytes;
}

// Every tensor is padded, the last one too, as ggml's own writer does.
void GgufWriter::skip_finished() {
  while (current_ < tensors_.size() && written_ == tensors_[current_].bytes()) {
    pad(align_up(written_, kAlignment) - written_);
    ++current_;
    written_ = 0;
  }
}

void GgufWriter::write(std::span<const std::byte> bytes) {
  const auto count = static_cast<int64_t>(bytes.size());
  if (current_ == tensors_.size() || count > tensors_[current_].bytes() - written_)
    throw Error("more bytes than the tensors hold", path_.string());
  write_all(fd_.get(), bytes, path_);
  written_ += count;
  file_bytes_ += count;
  skip_finished();
}

void GgufWriter::finish() {
  if (current_ != tensors_.size())
    throw Error(fmt::format("bytes of '{}' are missing", tensors_[current_].name), path_.string());
  sync_file(fd_.get(), path_);
  fd_.reset();
}

}  // namespace snug
