#include "formats/atomic_directory.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "formats/file.h"

namespace snug {

namespace fs = std::filesystem;

namespace {

// "out/" and "out" are the same place, but only the second has a file name to add to.
fs::path without_trailing_slash(fs::path path) {
  path = path.lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

void sync_tree(const fs::path& directory) {
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file() || entry.is_directory()) sync_path(entry.path());
  }
  sync_path(directory);
}

}  // namespace

AtomicDirectory::AtomicDirectory(fs::path target)
    : target_(without_trailing_slash(std::move(target))), temporary_(temporary_name(target_)) {
  std::error_code error;
  fs::create_directories(parent_of(target_), error);
  if (error) throw_errno("the directory cannot be created", parent_of(target_), error.value());
  fs::remove_all(temporary_, error);  // an earlier process may have had our number
  fs::create_directory(temporary_, error);
  if (error) throw_errno("the directory cannot be created", temporary_, error.value());
}

AtomicDirectory::~AtomicDirectory() {
  std::error_code error;
  if (!committed_) fs::remove_all(temporary_, error);
}

void AtomicDirectory::commit() {
  if (committed_) throw Error("the directory is already in place", target_.string());
  try {
    sync_tree(temporary_);
  } catch (const fs::filesystem_error& error) {
    throw_errno("the directory cannot be read", temporary_, error.code().value());
  }
  if (::rename(temporary_.c_str(), target_.c_str()) == 0) {
    committed_ = true;
  } else {
    if (errno != ENOTEMPTY && errno != EEXIST) throw_errno("the finished directory cannot be put in place", target_, errno);
    // Exchange the two in one step; the old one then has the temporary name.
    if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) != 0) {
      if (errno != EINVAL && errno != ENOSYS) throw_errno("the finished directory cannot be put in place", target_, errno);
      // A file system without exchange: two steps, and the old one is kept until the new one stands.
      const fs::path old = temporary_.string() + "-old";
      if (::rename(target_.c_str(), old.c_str()) != 0) throw_errno("the old directory cannot be moved away", target_, errno);
      if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
        const int code = errno;
        ::rename(old.c_str(), target_.c_str());
        throw_errno("the finished directory cannot be put in place", target_, code);
      }
      ::rename(old.c_str(), temporary_.c_str());
    }
    committed_ = true;
    std::error_code error;
    fs::remove_all(temporary_, error);
  }
  sync_path(parent_of(target_));
}

int64_t remove_temporaries(const fs::path& parent) {
  std::error_code error;
  std::vector<fs::path> stale;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const size_t mark = name.rfind(".tmp-");
    if (mark == std::string::npos || mark == 0) continue;
    std::string_view digits = std::string_view(name).substr(mark + 5);
    if (digits.ends_with("-old")) digits.remove_suffix(4);
    pid_t process = 0;
    const auto [stop, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), process);
    if (wrong != std::errc() || stop != digits.data() + digits.size() || process <= 0) continue;
    stale.push_back(entry->path());
  }
  int64_t removed = 0;
  for (const fs::path& path : stale) {
    fs::remove_all(path, error);
    if (!error) ++removed;
  }
  return removed;
}

}  // namespace snug
