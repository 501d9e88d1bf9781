#include "run/homes.h"

#include <algorithm>
#include <cstring>

namespace snug {

Homes::Homes(const Layout& layout, const std::filesystem::path& pages) {
  for (const Home home : {Home::device, Home::pinned, Home::host}) {
    const int64_t bytes = layout.of(home).bytes;
    if (bytes == 0 && home != Home::device) continue;
    const auto at = static_cast<size_t>(home);
    bases_[at] = arenas_[at].emplace(bytes).data();
  }
  if (const int64_t bytes = layout.of(Home::disk).bytes; bytes > 0) file_.emplace(pages, bytes);
}

void Homes::commit() {
  for (std::optional<Arena>& arena : arenas_)
    if (arena) arena->commit();
}

int64_t Homes::bytes(Home home) const {
  if (home == Home::disk) return file_ ? file_->bytes() : 0;
  const std::optional<Arena>& arena = arenas_[static_cast<size_t>(home)];
  return arena ? arena->bytes() : 0;
}

bool Homes::hold(const Layout& layout) const {
  for (int i = 0; i < kHomeCount; ++i)
    if (layout.of(static_cast<Home>(i)).bytes > bytes(static_cast<Home>(i))) return false;
  return true;
}

void Homes::read(Home home, int64_t offset, std::span<std::byte> out) const {
  if (home == Home::disk) return file_->read(offset, out);
  std::copy_n(bases_[static_cast<size_t>(home)] + offset, out.size(), out.data());
}

void Homes::write(Home home, int64_t offset, std::span<const std::byte> bytes) {
  if (home == Home::disk) return file_->write(offset, bytes);
  std::copy_n(bytes.data(), bytes.size(), bases_[static_cast<size_t>(home)] + offset);
}

void Homes::clear(Home home, int64_t offset, int64_t bytes) {
  if (home == Home::disk) return file_->clear(offset, bytes);
  std::memset(bases_[static_cast<size_t>(home)] + offset, 0, static_cast<size_t>(bytes));
}

PageFile::Ticket Homes::begin_read(Home home, int64_t offset, std::span<std::byte> out) {
  if (home == Home::disk) return file_->begin_read(offset, out);
  read(home, offset, out);
  return PageFile::kDone;
}

PageFile::Ticket Homes::begin_write(Home home, int64_t offset, std::span<std::byte> bytes) {
  if (home == Home::disk) return file_->begin_write(offset, bytes);
  write(home, offset, bytes);
  return PageFile::kDone;
}

void Homes::wait(Home home, PageFile::Ticket ticket, bool was_write) {
  if (home == Home::disk) file_->wait(ticket, was_write);
}

}  // namespace snug
