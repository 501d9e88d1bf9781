#include "plan/dump.h"

#include <fmt/format.h>

namespace snug {

std::string dump(const Layout& layout, const Program& program) {
  const HomeLayout& device = layout.device();
  std::string out = fmt::format("arena {} = run {} + dynamic {} (live {})\n", device.bytes, device.run_bytes,
                                device.dynamic_bytes, device.peak_live_bytes);
  for (size_t id = 0; id < program.storages.size(); ++id)
    if (program.storages[id].lifetime == Lifetime::run)
      out += fmt::format("{:>14} {:>14} {:<10} {}\n", layout.storages[id].offset, program.storages[id].bytes,
                         program.storages[id].home == Home::device ? "run" : name_of(program.storages[id].home),
                         program.storages[id].name);
  for (const Life& life : layout.timeline.lives)
    out += fmt::format("{:>14} {:>14} {:>4}..{:<4} {}{}\n", layout.offset_of(life.storage, life.first_instance), life.bytes,
                       life.birth, life.death, program.storage(life.storage).name,
                       life.count > 1 ? fmt::format(" x {} from {}", life.count, life.first_instance) : "");
  return out;
}

}  // namespace snug
