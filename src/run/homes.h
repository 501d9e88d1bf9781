#pragma once
// The homes of a run: an arena for each that is memory, a file for the disk, each as large as the Layout says and there
// before the first step.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "plan/layout.h"
#include "run/arena.h"
#include "run/page_file.h"

namespace snug {

// Where each home begins; null where it has no addresses.
using Bases = std::array<std::byte*, kHomeCount>;

class Homes {
 public:
  // Reserves the arenas, and commits the disk's room in a file `pages` where the Layout has something there. Throws Error if
  // the system does not give them.
  Homes(const Layout& layout, const std::filesystem::path& pages);

  // Commits the arenas.
  void commit();

  const Bases& bases() const { return bases_; }
  int64_t bytes(Home home) const;
  bool hold(const Layout& layout) const;

  // Bytes from `offset` of a home on. Each throws Error if the disk fails.
  void read(Home home, int64_t offset, std::span<std::byte> out) const;
  void write(Home home, int64_t offset, std::span<const std::byte> bytes);
  void clear(Home home, int64_t offset, int64_t bytes);

  // Pages that may move while ops run; see PageFile.
  PageFile::Ticket begin_read(Home home, int64_t offset, std::span<std::byte> out);
  PageFile::Ticket begin_write(Home home, int64_t offset, std::span<std::byte> bytes);
  void wait(Home home, PageFile::Ticket ticket, bool was_write);

 private:
  std::array<std::optional<Arena>, kHomeCount> arenas_;
  std::optional<PageFile> file_;
  Bases bases_{};
};

}  // namespace snug
