#pragma once
// Reads GGUF files, written apart from the code under test.

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

struct ReadGgufTensor {
  uint32_t type = 0;
  std::vector<int64_t> shape;  // row-major
  std::string bytes;
};

struct ReadGguf {
  std::map<std::string, nlohmann::json> keys;
  std::map<std::string, ReadGgufTensor> tensors;
};

class GgufReader {
 public:
  explicit GgufReader(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    file_ = {std::istreambuf_iterator<char>(stream), {}};
  }

  ReadGguf read() {
    ReadGguf result;
    if (take(4) != "GGUF" || number<uint32_t>() != 3) throw std::runtime_error("not GGUF 3");
    const auto tensors = number<uint64_t>(), keys = number<uint64_t>();
    for (uint64_t i = 0; i < keys; ++i) {
      const std::string key = text();
      result.keys[key] = value(number<uint32_t>());
    }
    std::vector<std::pair<std::string, uint64_t>> places;
    for (uint64_t i = 0; i < tensors; ++i) {
      const std::string name = text();
      ReadGgufTensor& tensor = result.tensors[name];
      const auto dimensions = number<uint32_t>();
      for (uint32_t d = 0; d < dimensions; ++d)
        tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(number<uint64_t>()));
      tensor.type = number<uint32_t>();
      places.emplace_back(name, number<uint64_t>());
    }
    const size_t data = (at_ + 31) / 32 * 32;
    for (const auto& [name, offset] : places) {
      ReadGgufTensor& tensor = result.tensors[name];
      if (offset % 32 != 0) throw std::runtime_error("a tensor is not aligned");
      int64_t elements = 1;
      for (const int64_t size : tensor.shape) elements *= size;
      const int64_t bytes = tensor.type == 0 ? elements * 4 : tensor.type == 8 ? elements / 32 * 34 : elements * 2;
      tensor.bytes = file_.substr(data + offset, static_cast<size_t>(bytes));
      if (tensor.bytes.size() != static_cast<size_t>(bytes)) throw std::runtime_error("the file is too short");
      end_ = std::max(end_, data + offset + static_cast<size_t>(bytes + 31) / 32 * 32);
    }
    if (end_ != file_.size() && !places.empty()) throw std::runtime_error("the file has another size than its tensors");
    return result;
  }

 private:
  std::string_view take(uint64_t count) {
    if (count > file_.size() - at_) throw std::runtime_error("the file is too short");
    at_ += count;
    return std::string_view(file_).substr(at_ - count, count);
  }
  template <class Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number<uint64_t>())); }
  nlohmann::json value(uint32_t type) {
    switch (type) {
      case 4: return number<uint32_t>();
      case 5: return number<int32_t>();
      case 6: return number<float>();
      case 7: return number<uint8_t>() != 0;
      case 8: return text();
      case 9: {
        const auto of = number<uint32_t>();
        nlohmann::json list = nlohmann::json::array();
        for (auto count = number<uint64_t>(); count > 0; --count) list.push_back(value(of));
        return list;
      }
      default: throw std::runtime_error("a type that is not expected");
    }
  }

  std::string file_;
  size_t at_ = 0, end_ = 0;
};

}  // namespace snug
