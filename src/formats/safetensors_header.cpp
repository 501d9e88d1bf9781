#include "formats/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/checked.h"
#include "base/error.h"
#include "model/json.h"

namespace snug {

namespace dom = simdjson::dom;

int64_t TensorEntry::elements() const {
  int64_t count = 1;
  for (const int64_t dimension : shape) count = checked_mul(count, dimension);
  return count;
}

DType TensorEntry::dtype() const {
  if (!stored->dtype) throw Error(fmt::format("tensor '{}' has dtype {}, which is not supported", name, stored->name));
  return *stored->dtype;
}

namespace {

constexpr int64_t kMostDimensions = 16;

TensorEntry parse_entry(std::string_view name, dom::element value, const std::string& where) {
  TensorEntry entry;
  entry.name = name;
  const std::string label = fmt::format("tensor '{}'", name);
  bool has_shape = false;
  int64_t begin = -1, end = -1;
  for (const auto [key, field] : json_object(label, value, where)) {
    if (key == "dtype") {
      const std::string type = json_string(label + ".dtype", field, where);
      entry.stored = find_stored_type(type);
      if (!entry.stored) throw Error(fmt::format("{} has unknown dtype '{}'", label, type), where);
    } else if (key == "shape") {
      has_shape = true;
      for (const dom::element dimension : json_array(label + ".shape", field, where)) {
        if (static_cast<int64_t>(entry.shape.size()) == kMostDimensions)
          throw Error(label + " has more than 16 dimensions", where);
        entry.shape.push_back(json_integer(label + ".shape", dimension, 0, INT64_MAX, where));
      }
    } else if (key == "data_offsets") {
      const dom::array offsets = json_array(label + ".data_offsets", field, where);
      if (offsets.size() != 2) throw Error(label + ".data_offsets must be two numbers", where);
      begin = json_integer(label + ".data_offsets", offsets.at(0), 0, INT64_MAX, where);
      end = json_integer(label + ".data_offsets", offsets.at(1), 0, INT64_MAX, where);
    }
  }
  if (!entry.stored) throw Error(label + " has no dtype", where);
  if (!has_shape) throw Error(label + " has no shape", where);
  if (begin < 0) throw Error(label + " has no data_offsets", where);
  if (end < begin) throw Error(fmt::format("{} ends at {} before it begins at {}", label, end, begin), where);
  entry.offset = begin;
  entry.bytes = end - begin;
  int64_t bits = 0;
  try {
    bits = checked_mul(entry.elements(), entry.stored->bits);
  } catch (const Error&) {
    throw Error(label + " is larger than any file can be", where);
  }
  if (bits % 8 != 0 || bits / 8 != entry.bytes) {
    throw Error(fmt::format("{} has {} bytes, but its shape and dtype make {}", label, entry.bytes, bits / 8), where,
                "the file is damaged");
  }
  return entry;
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t data_bytes, const std::string& where) {
  if (!json.starts_with('{')) throw Error("the header does not start with '{'", where, "is this a safetensors file?");
  const JsonDocument document(json, where);
  SafetensorsHeader header;
  for (const auto [name, value] : document.root_object()) {
    if (name != "__metadata__") {
      header.tensors.push_back(parse_entry(name, value, where));
      continue;
    }
    if (value.is_null()) continue;  // mlx writes this
    for (const auto [key, text] : json_object(name, value, where)) {
      header.metadata.emplace(key, json_string(fmt::format("__metadata__.{}", key), text, where));
    }
  }
  std::sort(header.tensors.begin(), header.tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  int64_t covered = 0;
  for (const TensorEntry& entry : header.tensors) {
    if (entry.offset > covered) {
      throw Error(fmt::format("bytes {} to {} before tensor '{}' belong to no tensor", covered, entry.offset, entry.name),
                  where, "the file is damaged");
    }
    if (entry.offset < covered)
      throw Error(fmt::format("tensor '{}' overlaps the one before it", entry.name), where, "the file is damaged");
    covered = entry.offset + entry.bytes;  // both come from offsets within int64
  }
  if (covered > data_bytes) {
    throw Error(fmt::format("the header promises {} bytes of data, the file has {}", covered, data_bytes), where,
                "the file is cut short: fetch it again");
  }
  if (covered < data_bytes) {
    throw Error(fmt::format("the file has {} bytes after the last tensor", data_bytes - covered), where,
                "the file is damaged");
  }
  return header;
}

std::string format_safetensors_header(const std::vector<TensorEntry>& tensors,
                                      const std::map<std::string, std::string>& metadata) {
  // As text straight away: a tree of the thousands of tensors of a model takes megabytes that no plan has.
  constexpr size_t kUsualEntry = 160;  // bytes
  std::string text;
  text.reserve(kUsualEntry * (tensors.size() + 1));
  text += '{';
  const auto quoted = [](const std::string& name) { return nlohmann::json(name).dump(); };
  if (!metadata.empty()) text += "\"__metadata__\":" + nlohmann::json(metadata).dump();
  int64_t offset = 0;
  for (const TensorEntry& entry : tensors) {
    const int64_t end = checked_add(offset, entry.bytes);
    if (text.size() > 1) text += ',';
    fmt::format_to(std::back_inserter(text), R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                   quoted(entry.name), entry.stored->name, fmt::join(entry.shape, ","), offset, end);
    offset = end;
  }
  text += '}';
  text.resize(static_cast<size_t>(align_up(static_cast<int64_t>(text.size()), 8)), ' ');
  return text;
}

}  // namespace snug
