#include "formats/manifest.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/file.h"
#include "model/json.h"

namespace snug {

namespace dom = simdjson::dom;

namespace {

constexpr int64_t kFormat = 1;

template <class Value>
const Value& state_value(const Manifest& manifest, const std::string& key, std::string_view kind) {
  const auto found = manifest.state.find(key);
  if (found == manifest.state.end()) throw Error(fmt::format("the checkpoint's state has no '{}'", key), kManifestName);
  const Value* value = std::get_if<Value>(&found->second);
  if (!value) throw Error(fmt::format("'{}' in the checkpoint's state is not {}", key, kind), kManifestName);
  return *value;
}

FileSum parse_file(std::string_view name, dom::element value, const std::string& where) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string_view::npos ||
      name.find('\0') != std::string_view::npos) {
    throw Error(fmt::format("'{}' is not a file name", name), where);
  }
  const std::string label = fmt::format("files['{}']", name);
  const dom::object object = json_object(label, value, where);
  dom::element bytes, sum;
  if (object.at_key("bytes").get(bytes) != simdjson::SUCCESS || object.at_key("xxh3").get(sum) != simdjson::SUCCESS) {
    throw Error(fmt::format("{} needs bytes and xxh3", label), where);
  }
  FileSum file;
  file.bytes = json_integer(label + ".bytes", bytes, 0, INT64_MAX, where);
  const std::string digits = json_string(label + ".xxh3", sum, where);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), file.xxh3, 16);
  if (digits.size() != 16 || error != std::errc() || end != digits.data() + digits.size()) {
    throw Error(fmt::format("{}.xxh3 must be 16 hexadecimal digits", label), where);
  }
  return file;
}

StateValue parse_state(std::string_view key, dom::element value, const std::string& where) {
  switch (value.type()) {
    case dom::element_type::INT64: return int64_t(value);
    case dom::element_type::DOUBLE: return double(value);
    case dom::element_type::STRING: return std::string(std::string_view(value));
    default: throw Error(fmt::format("state['{}'] must be a number or a string", key), where);
  }
}

}  // namespace

int64_t Manifest::integer(const std::string& key) const { return state_value<int64_t>(*this, key, "a whole number"); }
double Manifest::number(const std::string& key) const { return state_value<double>(*this, key, "a number"); }
std::string Manifest::text(const std::string& key) const { return state_value<std::string>(*this, key, "text"); }

void write_manifest(const std::filesystem::path& directory, const Manifest& manifest) {
  nlohmann::ordered_json json = {{"format", kFormat}, {"snug", manifest.version}, {"step", manifest.step}};
  json["files"] = nlohmann::ordered_json::object();
  for (const auto& [name, file] : manifest.files) {
    json["files"][name] = {{"bytes", file.bytes}, {"xxh3", fmt::format("{:016x}", file.xxh3)}};
  }
  json["state"] = nlohmann::ordered_json::object();
  for (const auto& [key, value] : manifest.state) {
    if (const double* number = std::get_if<double>(&value); number && !std::isfinite(*number)) {
      throw Error(fmt::format("state['{}'] is not a finite number", key), (directory / kManifestName).string());
    }
    std::visit([&, &name = key](const auto& held) { json["state"][name] = held; }, value);
  }
  write_file_atomically(directory / kManifestName, json.dump(2) + "\n");
}

Manifest parse_manifest(std::string_view json, const std::string& where) {
  const JsonDocument document(json, where);
  const dom::object root = document.root_object();
  const auto field = [&](std::string_view name) {
    dom::element value;
    if (root.at_key(name).get(value) != simdjson::SUCCESS) throw Error(fmt::format("'{}' is missing", name), where);
    return value;
  };
  const int64_t format = json_integer("format", field("format"), 1, INT64_MAX, where);
  if (format > kFormat)
    throw Error(fmt::format("format {} is newer than this program reads", format), where, "use a newer snug");
  Manifest manifest;
  manifest.version = json_string("snug", field("snug"), where);
  manifest.step = json_integer("step", field("step"), 0, INT64_MAX, where);
  for (const auto [name, value] : json_object("files", field("files"), where)) {
    manifest.files.emplace(name, parse_file(name, value, where));
  }
  for (const auto [key, value] : json_object("state", field("state"), where)) {
    manifest.state.emplace(key, parse_state(key, value, where));
  }
  return manifest;
}

Manifest read_manifest(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kManifestName;
  if (!is_there(path))
    throw Error("there is no snug.json here", directory.string(), "give a checkpoint that snug train wrote");
  return parse_manifest(read_text_file(path), path.string());
}

Manifest verify_manifest(const std::filesystem::path& directory) {
  Manifest manifest = read_manifest(directory);
  for (const auto& [name, expected] : manifest.files) {
    const std::filesystem::path path = directory / name;
    if (!is_there(path)) throw Error("the file is missing from the checkpoint", path.string(), "resume from an older one");
    const FileSum found = checksum_file(path);
    if (found.bytes != expected.bytes) {
      throw Error(fmt::format("the file has {} bytes instead of {}", found.bytes, expected.bytes), path.string(),
                  "it is damaged: resume from an older checkpoint");
    }
    if (found.xxh3 != expected.xxh3)
      throw Error("the file's checksum is wrong", path.string(), "it is damaged: resume from an older checkpoint");
  }
  return manifest;
}

}  // namespace snug
