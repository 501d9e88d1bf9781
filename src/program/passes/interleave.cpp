#include "program/passes/interleave.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "program/passes/pipeline_order.h"

namespace snug {

namespace {

// Those that the region reads before it writes them: somebody else has made them.
StorageSet awaited(const Program& program, const Region& region) {
  StorageSet seen, found;
  for_each_op(region, [&](const Op& op, const Region&) {
    for (const bool reads : {true, false})
      for (const Operand& operand : op.operands) {
        if ((operand.access == Access::write) == reads) continue;
        const StorageId id = program.tensor(operand.tensor).storage;
        if (seen.insert(id).second && reads) found.insert(id);
      }
  });
  std::erase_if(found, [&](StorageId id) { return program.storage(id).lifetime == Lifetime::run; });
  return found;
}

// What passes from one part to another has an instance for each micro-batch that is on its way between them: from the first
// that touches it to the last that reads it. What is sent stays until it has been received, so that nobody waits for a
// neighbour who waits for him: forwards until their backward, rows of gradients until the same chunk's next backward.
class KeepApart {
 public:
  KeepApart(Program& program, const ChunkParts& parts) : program_(program) {
    for (const bool ahead : {true, false})
      for (const Region& part : ahead ? parts.ahead : parts.back) look_at(part, Place{ahead, part.index});
    for (const auto& [id, use] : uses_)
      if (use.awaited || use.sent) keep_apart(program_, id, slots_of(use));
  }

 private:
  // A part's place in a micro-batch's way: forwards by chunk, then backwards from the last chunk to the first.
  struct Place {
    bool ahead;
    int32_t chunk;
  };
  struct Use {
    int64_t first, last;
    bool awaited = false, sent = false;
  };

  int64_t number(const Place& place) const {
    const int64_t chunks = program_.mesh.chunks;
    return place.ahead ? place.chunk : 2 * chunks - 1 - place.chunk;
  }

  void look_at(const Region& part, const Place& place) {
    const int64_t at = number(place);
    for (const StorageId id : touched(program_, part, false)) {
      Use& use = uses_.emplace(id, Use{at, at}).first->second;
      use.first = std::min(use.first, at);
    }
    for (const StorageId id : awaited(program_, part)) {
      Use& use = uses_.at(id);
      use.awaited = true;
      use.last = std::max(use.last, at);
    }
    for_each_op(part, [&](const Op& op, const Region&) {
      if (op.kind != OpKind::send) return;
      const StorageId id = program_.tensor(op.find(Slot::x)).storage;
      if (program_.storage(id).lifetime == Lifetime::run) return;
      Use& use = uses_.at(id);
      use.sent = true;
      if (place.ahead) use.last = std::max(use.last, number({false, place.chunk}));
    });
  }

  // Micro-batches for which `first` has begun and `last` has not ended, at most.
  int64_t slots_of(const Use& use) {
    const auto found = slots_.find({use.first, use.last});
    if (found != slots_.end()) return found->second;
    int64_t begun = 0, ended = 0, most = 1;
    // Rounds repeat: four of them show all that many do.
    const int64_t micro_batches = std::min(program_.micro_batches, 4 * program_.mesh.pipeline);
    for (const PipelineTurn& turn : pipeline_order(program_.mesh, program_.stage, micro_batches)) {
      const int64_t at = number({turn.ahead, static_cast<int32_t>(turn.chunk)});
      if (at == use.first) most = std::max(most, ++begun - ended);
      if (at == use.last) ++ended;
    }
    return slots_[{use.first, use.last}] = most;
  }

  Program& program_;
  std::map<StorageId, Use> uses_;
  std::map<std::pair<int64_t, int64_t>, int64_t> slots_;
};

// Turns one after the other that are alike: a forward, a backward, or both by turns.
struct Stretch {
  std::optional<int64_t> ahead, back;  // of which chunk
  int64_t count = 0;
};

std::vector<Stretch> stretches_of(const std::vector<PipelineTurn>& order, size_t begin, size_t end, bool pairs) {
  std::vector<Stretch> all;
  for (size_t i = begin; i < end; i += pairs ? 2 : 1) {
    Stretch one{.count = 1};
    (order[i].ahead ? one.ahead : one.back) = order[i].chunk;
    if (pairs) one.back = order[i + 1].chunk;
    if (!all.empty() && all.back().ahead == one.ahead && all.back().back == one.back) {
      ++all.back().count;
    } else {
      all.push_back(one);
    }
  }
  return all;
}

class Interleaving {
 public:
  Interleaving(Program& program, Region& all, ChunkParts parts) : program_(program), all_(all), parts_(std::move(parts)) {}

  void run() {
    const KeepApart kept(program_, parts_);
    const RankMesh& mesh = program_.mesh;
    const auto order = pipeline_order(mesh, program_.stage, program_.micro_batches);
    const auto warm = static_cast<size_t>(pipeline_warm_up(mesh, program_.stage, program_.micro_batches));
    const auto round = static_cast<size_t>(2 * mesh.pipeline * mesh.chunks), steady = order.size() - 2 * warm;
    const size_t rounds = steady / round, rest = order.size() - warm;
    add("warm_up", stretches_of(order, 0, warm, false), all_);
    if (rounds > 0) {
      Region loop{
          .name = "steady", .stage = Stage::forward, .axis = Axis::micro_batch, .count = static_cast<int64_t>(rounds)};
      add("round", stretches_of(order, warm, warm + round, true), loop);
      all_.add(std::move(loop));
    }
    add("steady", stretches_of(order, warm + rounds * round, rest, true), all_);
    add("cool_down", stretches_of(order, rest, order.size(), false), all_);
  }

 private:
  void add(const char* name, const std::vector<Stretch>& stretches, Region& to) {
    for (const Stretch& stretch : stretches) {
      std::vector<Region> parts;
      if (stretch.ahead) parts.push_back(part_of(parts_.ahead, seen_ahead_, *stretch.ahead));
      if (stretch.back) parts.push_back(part_of(parts_.back, seen_back_, *stretch.back));
      to.add(loop_of(name, Section::other, stretch.count, std::move(parts)));
    }
  }

  // The first keeps its sections, by which others look for them.
  Region part_of(const std::vector<Region>& parts, std::set<int64_t>& seen, int64_t chunk) {
    const Region& part = parts[static_cast<size_t>(chunk)];
    return seen.insert(chunk).second ? part : copy_of(program_, part);
  }

  Program& program_;
  Region& all_;
  ChunkParts parts_;
  std::set<int64_t> seen_ahead_, seen_back_;
};

}  // namespace

void interleave(Program& program, Region& all, ChunkParts parts) { Interleaving(program, all, std::move(parts)).run(); }

}  // namespace snug
