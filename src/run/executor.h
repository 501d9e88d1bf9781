#pragma once
// The executor: walks a Program's regions in order and runs their ops in the arena. Host ops (load, batch, save) go to
// whoever drives it. It owns no policy: the loop decides which region runs when.

#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "base/scalars.h"
#include "comm/rank_rings.h"
#include "kernels/backend.h"
#include "run/binding.h"
#include "run/comm_lane.h"
#include "run/homes.h"
#include "run/lookahead.h"
#include "run/page_lanes.h"
#include "run/transfer.h"

namespace snug {

// What the host does when the Program reaches one of its ops.
class Host {
 public:
  virtual ~Host() = default;
  // `repetition`: of the enclosing micro-batch region, from 0.
  virtual void run(const Op& op, int64_t repetition) = 0;
};

// Sees every op before and after it runs (shadow runs, traces). While somebody looks, pages move where the Program has them.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void before(const Op& op, const Binding& binding) = 0;
  virtual void after(const Op& op, const Binding& binding) = 0;
};

class Executor {
 public:
  // Asks the backend whether it can run every op (throws Error naming what it cannot), reserves its homes, the disk's
  // in a file `pages`, then prepares every op's kernel.
  Executor(const Program& program, const Layout& layout, const std::filesystem::path& pages = {},
           const kernels::Backend& backend = kernels::built_in_backend());

  // Works in the homes of `owner`, which must outlive it and hold the layout, with its backend and what that has made.
  Executor(const Program& program, const Layout& layout, const Executor& owner);

  // Commits its homes once all who work in them are prepared: code that has prepared is given back first, so that its pages
  // and the arenas' are never there together. By the owner, before anything is run or written.
  void commit();

  // Runs a region. `repetitions`: how often a micro-batch region inside repeats (0: as often as the Program says).
  void run(const Region& region, Host& host, int64_t repetitions = 0);

  void observe(Observer* observer) { observer_ = observer; }

  // Of a Program of several ranks: before it is run or written to. `ranks` and the lanes must outlive it.
  void join(RankRings& ranks, CommLanes& lanes);
  const RankRings* ranks() const { return ranks_; }  // null: it runs alone

  // Of the device's arena.
  int64_t arena_bytes() const { return homes_.bytes(Home::device); }

  // How whoever drives it reads and writes its tensors.
  Transfer& transfer() { return transfer_; }
  const Transfer& transfer() const { return transfer_; }
  double scalar(Scalar scalar) const;
  void set_scalar(Scalar scalar, double value);

  // Runs an op that no region has, on a layer's views and with bytes to scribble on.
  void run_apart(const Op& op, int64_t layer, std::span<std::byte> workspace);
  // What its lanes have moved so far.
  const PageLanes::Traffic& traffic() const { return lanes_.traffic(); }
  // Distinct products that the backend has made so far.
  int64_t prepared_products() const { return session_->products(); }

  const Program& program() const { return program_; }
  const Layout& layout() const { return layout_; }

 private:
  friend struct InPlace;

  void prepare_ops(const Region& region, int64_t layer);
  // The binding of a region's iteration; none beyond its last.
  std::optional<Binding> binding_of(const Region& region, int64_t iteration, int64_t count) const;
  void run_body(const Region& region, Host& host, int64_t repetitions, const std::optional<Binding>& next);
  void run_op(const Op& op, Host& host);
  void run_kernel(const Op& op, const Binding& binding);
  void wait_for(const OpView& view, const Op& op);
  void wait_for(const std::byte* memory, int64_t bytes, bool writes);
  // An op of another lane than compute, where the Program has it; what fetches was begun before unless somebody looks.
  void run_beside(const Op& op, const Binding& binding);
  void begin(const Op& op, const Binding& binding);
  void begin_page(const Op& op, const Binding& binding);
  void begin_collective(const Op& op, const Binding& binding);
  void begin_all(const std::vector<Lookahead::Start>& starts, const std::optional<Binding>& next);
  const Lookahead* lookahead_of(const Region& region) const;
  Binding here() const { return {program_, layout_, homes_.bases(), layer_, chunk_, transfer_.rank(), turn_}; }
  bool skipped(const Region& region);
  int64_t count_of(const Region& region, int64_t repetitions) const;
  void take_turn(const Region& region);

  const Program& program_;
  const Layout& layout_;
  const kernels::Backend& backend_;
  std::unique_ptr<kernels::Session> own_session_;
  kernels::Session* session_ = nullptr;
  std::optional<Homes> own_homes_;
  Homes& homes_;
  Transfer transfer_;
  PageLanes lanes_;
  Lookaheads lookaheads_;
  Observer* observer_ = nullptr;
  const RankRings* ranks_ = nullptr;
  CommLanes* comm_ = nullptr;
  int64_t layer_ = 0, repetition_ = 0, chunk_ = 0, turn_ = 0;
  struct Turns {
    int64_t begun = 0, come_back = 0;  // micro-batches of this step
  };
  std::vector<Turns> turns_;  // by chunk of the stage
  int depth_ = 0;             // of the region that runs
};

}  // namespace snug
