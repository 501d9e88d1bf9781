#include "comm/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <sstream>
#include <utility>

#include "comm/agree.h"
#include "formats/atomic_directory.h"
#include "formats/file.h"

namespace snug {

namespace fs = std::filesystem;

namespace {

constexpr size_t kChunk = 65536;
using Chunk = std::array<std::byte, kChunk>;

int64_t a_number() {
  std::random_device entropy;
  return static_cast<int64_t>(uint64_t{entropy()} << 32 | entropy());
}

// A file that is there while this lives, under a name that a later run removes as left behind.
class Mark {
 public:
  explicit Mark(fs::path path) : path_(std::move(path)) { open_to_write(path_); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark() {
    std::error_code error;
    fs::remove(path_, error);
  }

 private:
  fs::path path_;
};

void make_directories(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw_errno("the directory cannot be created", directory, error.value());
}

struct FileToBring {
  int64_t bytes = 0;
  std::string name;  // within the directory
};

std::string list_of(const fs::path& directory) {
  std::string list;
  try {
    for (const auto& entry : fs::recursive_directory_iterator(directory))
      if (entry.is_regular_file())
        list += fmt::format("{} {}\n", entry.file_size(), entry.path().lexically_relative(directory).string());
  } catch (const fs::filesystem_error& error) {
    throw_errno("the directory cannot be read", directory, error.code().value());
  }
  return list;
}

std::vector<FileToBring> files_of(const std::string& list) {
  std::vector<FileToBring> files;
  std::istringstream lines(list);
  for (FileToBring file; lines >> file.bytes && std::getline(lines.ignore(), file.name);) files.push_back(file);
  return files;
}

// From the first rank through all before `last` to it.
void pass_down(Communicator& ranks, int64_t last, std::span<std::byte> chunk) {
  if (ranks.rank() > 0) ranks.receive(chunk);
  if (ranks.rank() < last) ranks.send(chunk);
}

// `into`: where this rank keeps a copy; none if it only passes bytes on.
void bring_file(Communicator& ranks, int64_t last, const fs::path& from, const std::optional<fs::path>& into,
                int64_t bytes) {
  UniqueFd source, copy;
  if (ranks.rank() == 0) source = open_to_read(from);
  if (into) make_directories(into->parent_path());
  if (into) copy = open_to_write(*into);
  Chunk room{};
  for (int64_t done = 0; done < bytes; done += static_cast<int64_t>(kChunk)) {
    const std::span<std::byte> chunk = std::span(room).first(static_cast<size_t>(std::min<int64_t>(kChunk, bytes - done)));
    if (source) read_at(source.get(), done, chunk, from);
    pass_down(ranks, last, chunk);
    if (copy) write_all(copy.get(), chunk, *into);
  }
}

// Adds them to what a file has there, which are zeros where these are not.
void add_bytes(int reader, int writer, int64_t offset, std::span<const std::byte> bytes, const fs::path& path) {
  Chunk room{};
  const std::span<std::byte> own = std::span(room).first(bytes.size());
  const int64_t there = std::clamp<int64_t>(file_bytes(reader, path) - offset, 0, static_cast<int64_t>(bytes.size()));
  read_at(reader, offset, own.first(static_cast<size_t>(there)), path);
  for (size_t i = 0; i < bytes.size(); ++i) own[i] |= bytes[i];
  write_at(writer, offset, own, path);
}

// A keeper's file on its way to the first rank, which lies behind the last one in the ring. What is all zeros is only said.
void merge_file(Communicator& ranks, int64_t keeper, const fs::path& file, int64_t bytes) {
  const bool gives = ranks.rank() == keeper, takes = ranks.rank() == 0;
  UniqueFd reader, writer;
  if (gives || takes) reader = open_to_read(file);
  if (takes) writer = open_to_update(file);
  Chunk room{};
  for (int64_t done = 0; done < bytes; done += static_cast<int64_t>(kChunk)) {
    const std::span<std::byte> chunk = std::span(room).first(static_cast<size_t>(std::min<int64_t>(kChunk, bytes - done)));
    std::byte says{};
    if (gives) read_at(reader.get(), done, chunk, file);
    if (gives) says = std::byte{std::ranges::any_of(chunk, [](std::byte b) { return b != std::byte{}; })};
    for (const std::span<std::byte> part : {std::span(&says, 1), chunk}) {
      if (part.data() == chunk.data() && says == std::byte{}) continue;
      if (!gives) ranks.receive(part);
      if (!takes) ranks.send(part);
    }
    if (takes && says != std::byte{}) add_bytes(reader.get(), writer.get(), done, chunk, file);
  }
}

}  // namespace

Places::Places(Communicator& ranks, const fs::path& directory)
    : rank_(ranks.rank()), keepers_(static_cast<size_t>(ranks.ranks()), -1) {
  make_directories(directory);
  const std::vector<int64_t> numbers = all_ranks(ranks, a_number());
  for (auto first = keepers_.begin(); first != keepers_.end(); first = std::find(first, keepers_.end(), -1)) {
    const int64_t keeper = first - keepers_.begin();
    const fs::path name = directory / fmt::format(".seen-{:016x}.tmp-1", numbers[static_cast<size_t>(keeper)]);
    std::optional<Mark> mark;
    if (rank_ == keeper) mark.emplace(name);
    ranks.barrier();
    const std::vector<int64_t> seen = all_ranks(ranks, is_there(name) ? 1 : 0);
    keepers_[static_cast<size_t>(keeper)] = keeper;  // whatever its file system says of what it has just written
    for (size_t rank = 0; rank < seen.size(); ++rank)
      if (keepers_[rank] < 0 && seen[rank] != 0) keepers_[rank] = keeper;
  }
}

int64_t Places::last_keeper() const { return *std::max_element(keepers_.begin(), keepers_.end()); }

fs::path Places::bring(Communicator& ranks, const fs::path& from, const fs::path& to) const {
  const int64_t last = last_keeper();
  if (last == 0) return from;
  const std::vector<FileToBring> files = files_of(of_first_rank(ranks, rank_ == 0 ? list_of(from) : ""));
  std::optional<AtomicDirectory> copy;
  if (keeps() && rank_ > 0) copy.emplace(to);
  for (const FileToBring& file : files) {
    if (rank_ > last) break;
    bring_file(ranks, last, from / file.name, copy ? std::optional(copy->path() / file.name) : std::nullopt, file.bytes);
  }
  if (copy) copy->commit();
  ranks.barrier();
  return keeper() == 0 ? from : to;
}

void Places::merge(Communicator& ranks, const fs::path& file) const {
  for (int64_t keeper = 1; keeper <= last_keeper(); ++keeper) {
    if (keepers_[static_cast<size_t>(keeper)] != keeper) continue;
    int64_t bytes = 0;
    if (rank_ == keeper) bytes = file_bytes(open_to_read(file).get(), file);
    bytes = all_ranks(ranks, bytes)[static_cast<size_t>(keeper)];
    if (rank_ == 0 || rank_ >= keeper) merge_file(ranks, keeper, file, bytes);
  }
}

}  // namespace snug
