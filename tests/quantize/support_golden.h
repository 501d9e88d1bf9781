#pragma once
// tests/golden/quantize: tensors, and what bitsandbytes made of them (tests/oracle/make_quantize.py).

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "quantize/values.h"

namespace snug {

class GoldenQuantized {
 public:
  GoldenQuantized() : file_(directory() / "quantized.safetensors") {
    std::ifstream stream(directory() / "cases.json");
    cases = nlohmann::json::parse(stream);
  }

  // The tensor's bytes as elements of T, whatever they are.
  template <class T>
  std::vector<T> read(const std::string& name) const {
    const TensorEntry& entry = file_.at(name);
    std::vector<T> elements(static_cast<size_t>(entry.bytes) / sizeof(T));
    file_.read(entry, 0, std::as_writable_bytes(std::span(elements)));
    return elements;
  }

  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  DType dtype(const std::string& name) const { return file_.at(name).dtype(); }

  nlohmann::json cases;  // {"name", "input", "kind", "block", "nested"}

 private:
  static std::filesystem::path directory() { return std::filesystem::path(SNUG_SOURCE_DIR) / "tests/golden/quantize"; }
  Checkpoint file_;
};

// Elements that differ in any bit; -1 where their numbers do.
template <class T>
int64_t differing(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return -1;
  int64_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += std::memcmp(&a[i], &b[i], sizeof(T)) != 0 ? 1 : 0;
  return count;
}

}  // namespace snug
