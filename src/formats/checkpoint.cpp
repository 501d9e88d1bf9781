#include "formats/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <system_error>

#include "base/checked.h"
#include "base/error.h"
#include "model/json.h"

namespace snug {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian and are read as they are");

namespace {

constexpr size_t kMostShards = 4096;

// A shard must lie beside its index: a name such as "../x" could point anywhere.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

// Tensor name → shard name.
std::map<std::string, std::string> read_weight_map(const fs::path& index) {
  const JsonDocument document(read_text_file(index), index.string());
  simdjson::dom::element value;
  if (document.root_object().at_key("weight_map").get(value) != simdjson::SUCCESS) {
    throw Error("the index has no weight_map", index.string(), "is this a model.safetensors.index.json?");
  }
  std::map<std::string, std::string> shard_of;
  for (const auto [name, shard] : json_object("weight_map", value, index.string())) {
    const std::string file = json_string(fmt::format("weight_map['{}']", name), shard, index.string());
    if (!is_plain_name(file))
      throw Error(fmt::format("weight_map names '{}', which is not a file name", file), index.string());
    shard_of.emplace(name, file);
  }
  if (shard_of.empty()) throw Error("the weight_map is empty", index.string());
  return shard_of;
}

}  // namespace

Checkpoint::Checkpoint(const fs::path& path) : path_(path) {
  if (!is_there(path)) throw Error("there is no such file or directory", path.string());
  std::error_code error;
  const bool directory = fs::is_directory(path, error);
  if (error) throw_errno("the file cannot be examined", path, error.value());
  if (!directory) {
    if (path.string().ends_with(".index.json")) {
      open_index(path);
    } else {
      open_shard(path);
    }
  } else if (is_there(path / "model.safetensors")) {
    open_shard(path / "model.safetensors");
  } else if (is_there(path / "model.safetensors.index.json")) {
    open_index(path / "model.safetensors.index.json");
  } else if (is_there(path / "pytorch_model.bin") || is_there(path / "pytorch_model.bin.index.json")) {
    throw Error("the checkpoint holds pickled weights, which are not read", path.string(),
                "save it again with safe_serialization=True");
  } else {
    throw Error("there is no model.safetensors and no model.safetensors.index.json here", path.string(),
                "give a Hugging Face checkpoint directory");
  }
  index_names();
}

void Checkpoint::open_shard(const fs::path& file) {
  UniqueFd fd = open_to_read(file);
  const int64_t bytes = file_bytes(fd.get(), file);
  if (bytes < 8)
    throw Error(fmt::format("a file of {} bytes is too short for safetensors", bytes), file.string(),
                "the file is cut short: fetch it again");
  std::array<std::byte, 8> prefix = {};
  read_at(fd.get(), 0, prefix, file);
  const auto length = std::bit_cast<uint64_t>(prefix);
  if (length > static_cast<uint64_t>(kLargestSafetensorsHeader)) {
    throw Error(fmt::format("the header's length of {} bytes is not possible", length), file.string(),
                "is this a safetensors file?");
  }
  const auto header_bytes = static_cast<int64_t>(length);
  if (header_bytes > bytes - 8) {
    throw Error(fmt::format("the header has {} bytes, the file only {}", header_bytes, bytes), file.string(),
                "the file is cut short: fetch it again");
  }
  std::string text(static_cast<size_t>(header_bytes), '\0');
  read_at(fd.get(), 8, std::as_writable_bytes(std::span(text)), file);
  const int64_t start = 8 + header_bytes;
  SafetensorsHeader header = parse_safetensors_header(text, bytes - start, file.string());
  for (TensorEntry& entry : header.tensors) {
    entry.file = static_cast<int>(paths_.size());
    entry.offset += start;
    tensors_.push_back(std::move(entry));
  }
  paths_.push_back(file);
  fds_.push_back(std::move(fd));
}

void Checkpoint::open_index(const fs::path& index) {
  const std::map<std::string, std::string> shard_of = read_weight_map(index);
  std::set<std::string> shards;
  for (const auto& [name, shard] : shard_of) shards.insert(shard);
  if (shards.size() > kMostShards) throw Error(fmt::format("the index names {} shards", shards.size()), index.string());
  std::map<std::string_view, std::string_view> found;  // tensor → shard, from the headers
  for (const std::string& shard : shards) {
    const fs::path file = parent_of(index) / shard;
    if (!is_there(file)) throw Error(fmt::format("shard '{}' is missing", shard), index.string(), "fetch it");
    open_shard(file);
  }
  for (const TensorEntry& entry : tensors_) {
    const std::string shard = paths_[static_cast<size_t>(entry.file)].filename().string();
    const auto listed = shard_of.find(entry.name);
    if (listed == shard_of.end())
      throw Error(fmt::format("tensor '{}' of '{}' is not in the index", entry.name, shard), index.string());
    if (listed->second != shard) {
      throw Error(fmt::format("tensor '{}' is in '{}', but the index says '{}'", entry.name, shard, listed->second),
                  index.string());
    }
    found.emplace(entry.name, shard_of.find(entry.name)->second);
  }
  for (const auto& [name, shard] : shard_of) {
    if (!found.contains(name))
      throw Error(fmt::format("tensor '{}' is not in '{}', where the index puts it", name, shard), index.string());
  }
}

void Checkpoint::index_names() {
  by_name_.resize(tensors_.size());
  for (size_t i = 0; i < by_name_.size(); ++i) by_name_[i] = i;
  std::sort(by_name_.begin(), by_name_.end(), [&](size_t a, size_t b) { return tensors_[a].name < tensors_[b].name; });
  tensors_.shrink_to_fit();
}

const TensorEntry* Checkpoint::find(std::string_view name) const {
  const auto place = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                      [&](size_t index, std::string_view wanted) { return tensors_[index].name < wanted; });
  if (place == by_name_.end() || tensors_[*place].name != name) return nullptr;
  return &tensors_[*place];
}

const TensorEntry& TensorSource::at(std::string_view name) const {
  if (const TensorEntry* entry = find(name)) return *entry;
  throw Error(fmt::format("the checkpoint has no tensor '{}'", name), path().string());
}

std::string Checkpoint::label_of(const TensorEntry& entry) const {
  return paths_[static_cast<size_t>(entry.file)].string() + ": " + entry.name;
}

void Checkpoint::read(const TensorEntry& entry, int64_t begin, std::span<std::byte> out) const {
  const auto count = static_cast<int64_t>(out.size());
  if (begin < 0 || begin > entry.bytes || count > entry.bytes - begin) {
    throw Error(
        fmt::format("tensor '{}' has {} bytes; {} from byte {} were asked for", entry.name, entry.bytes, count, begin),
        path_.string());
  }
  const auto file = static_cast<size_t>(entry.file);
  for_each_run(entry.cut.get(), begin, count, [&](int64_t at, int64_t bytes) {
    read_at(fds_[file].get(), entry.offset + at, out.first(static_cast<size_t>(bytes)), paths_[file]);
    out = out.subspan(static_cast<size_t>(bytes));
  });
}

void Checkpoint::drop_behind(const TensorEntry& entry, int64_t begin, int64_t bytes) const {
  // The cache keeps bytes in blocks of up to 2 MiB and drops whole blocks only: the block that holds the first byte is
  // included, since whoever reads forward is done with what precedes. Advice only: its failure changes nothing.
  constexpr int64_t kLargestBlock = int64_t{2} << 20;
  int64_t first = -1, last = 0;
  for_each_run(entry.cut.get(), begin, bytes, [&](int64_t at, int64_t count) {
    if (first < 0) first = at;
    last = at + count;
  });
  const int64_t start = (entry.offset + first) / kLargestBlock * kLargestBlock;
  const int64_t end = entry.offset + last;
  static_cast<void>(::posix_fadvise(fds_[static_cast<size_t>(entry.file)].get(), start, end - start, POSIX_FADV_DONTNEED));
}

int64_t Checkpoint::data_bytes() const {
  int64_t total = 0;
  for (const TensorEntry& entry : tensors_) total = checked_add(total, entry.bytes);
  return total;
}

}  // namespace snug
