#pragma once
// A shadow run: every storage is filled with NaN when it is born and when it dies, with a red zone behind it, so that
// reading what was not written, writing what is not yours and reading what is dead all show.

#include <map>
#include <tuple>
#include <vector>

#include "plan/support_unfold.h"
#include "run/executor.h"

namespace snug::testing {

class Shadow : public Observer {
 public:
  // `red_zone`: bytes behind every instance, as the layout was made.
  Shadow(Executor& executor, int64_t red_zone);

  void before(const Op& op, const Binding& binding) override;
  void after(const Op& op, const Binding& binding) override;

  int64_t zones_checked() const { return zones_checked_; }
  int64_t zones_touched() const { return zones_touched_; }
  // Share of the arena's bytes that were ever written; call at the end.
  double written_share();

 private:
  bool lives_throughout(size_t storage) const;  // in the arena
  void number(const Region& region, int64_t layer, bool in_layers, int64_t chunk);
  int64_t time_of(const Op& op, const Binding& binding) const;
  std::byte* begin_of(StorageId storage, int64_t instance) const;
  void birth(StorageId storage, int64_t instance);
  void death(StorageId storage, int64_t instance);
  void note_written(StorageId storage, int64_t instance);

  Executor& executor_;
  int64_t red_zone_;
  int64_t clock_ = 0, zones_checked_ = 0, zones_touched_ = 0;
  std::map<std::tuple<const Op*, int64_t, int64_t>, int64_t> times_;  // by op, layer, chunk
  std::multimap<int64_t, UnfoldedLife> births_, deaths_;
  std::vector<std::byte> written_;  // by byte of the arena; not 0 where something was
};

}  // namespace snug::testing
