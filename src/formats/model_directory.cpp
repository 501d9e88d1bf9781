#include "formats/model_directory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "formats/file.h"

namespace snug {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr int64_t kLargestConfig = int64_t{16} << 20;  // bytes
constexpr int64_t kLargestOther = int64_t{1} << 30;    // a tokenizer's files have tens of MB

// Weights in any format, what only their directory means, and what describes the base alone.
bool stays_behind(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.starts_with(".") || name == "README.md" || name == "snug.json") return true;
  if (name.ends_with(".index.json")) return true;
  constexpr const char* kWeights[] = {".safetensors", ".bin", ".pt",      ".pth", ".gguf",
                                      ".onnx",        ".h5",  ".msgpack", ".npz", ".ot"};
  return std::any_of(std::begin(kWeights), std::end(kWeights), [&](const char* end) { return name.ends_with(end); });
}

bool is_within(const fs::path& path, const fs::path& directory) {
  const fs::path relative = fs::weakly_canonical(path).lexically_relative(fs::weakly_canonical(directory));
  return !relative.empty() && *relative.begin() != "..";
}

}  // namespace

Json read_config_json(const fs::path& model) {
  const fs::path path = model / "config.json";
  if (!is_there(path)) throw Error("there is no config.json here", model.string(), "give a checkpoint directory");
  try {
    Json config = Json::parse(read_text_file(path, kLargestConfig));
    if (config.is_object()) return config;
  } catch (const Json::exception&) {
  }
  throw Error("is not a JSON object", path.string());
}

Json& text_part(Json& config) {
  const auto text = config.find("text_config");
  return text != config.end() && text->is_object() ? *text : config;
}

void copy_through(const fs::path& from, const fs::path& to) {
  const UniqueFd in = open_to_read(from), out = open_to_write(to);
  const int64_t bytes = file_bytes(in.get(), from);
  if (bytes > kLargestOther) throw Error("is too large to be a file of a tokenizer", from.string(), "move it elsewhere");
  std::vector<std::byte> buffer(size_t{1} << 20);
  for (int64_t offset = 0; offset < bytes;) {
    const auto part = std::span(buffer).first(static_cast<size_t>(std::min<int64_t>(bytes - offset, int64_t{1} << 20)));
    read_at(in.get(), offset, part, from);
    write_all(out.get(), part, to);
    offset += static_cast<int64_t>(part.size());
  }
}

void copy_model_files(const fs::path& base, const fs::path& to) {
  for (const fs::path& path : entries_of(base))
    if (fs::is_regular_file(path) && !stays_behind(path)) copy_through(path, to / path.filename());
}

void check_output(const fs::path& output, std::span<const fs::path> sources, std::string_view done, bool overwrite) {
  for (const fs::path& source : sources)
    if (is_within(source, output))
      throw Error(fmt::format("holds what is to be {}", done), output.string(), "give another --output-dir");
  if (!is_there(output)) return;
  if (!fs::is_directory(output)) throw Error("is not a directory", output.string(), "give another --output-dir");
  if (entries_of(output).empty()) return;
  if (!overwrite)
    throw Error("is not empty", output.string(), "give another --output-dir, or --overwrite-output-dir to replace it");
  if (!is_there(output / "config.json"))
    throw Error("holds something that is not a model", output.string(), "give another --output-dir");
}

std::string shard_name(size_t index, size_t count) {
  return count == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

void write_index(const fs::path& directory, const std::map<std::string, std::string>& places, int64_t total_bytes) {
  Json map = Json::object();
  for (const auto& [tensor, file] : places) map[tensor] = file;
  const Json index = {{"metadata", {{"total_size", total_bytes}}}, {"weight_map", map}};
  write_file_atomically(directory / "model.safetensors.index.json", index.dump(2) + "\n");
}

}  // namespace snug
