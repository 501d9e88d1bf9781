// Which keys of a block a panel of queries may see, in HWY_NAMESPACE, read once for each instruction set.

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/highway_lanes.h"

#if defined(SNUG_KERNELS_CPU_ATTENTION_MASK_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SNUG_KERNELS_CPU_ATTENTION_MASK_H
#undef SNUG_KERNELS_CPU_ATTENTION_MASK_H
#else
#define SNUG_KERNELS_CPU_ATTENTION_MASK_H
#endif

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

// The first visible key of `rows` queries from `first_query` on (where its document or, if there is one, its window begins),
// the last repeated up to `padded_rows`; returns the lowest. `document_start` is that of the first query.
inline int32_t read_starts(const int32_t* document_start, int64_t first_query, int64_t window, int64_t rows,
                           int64_t padded_rows, int32_t* start) {
  for (int64_t q = 0; q < rows; ++q)
    start[q] = window == 0 ? document_start[q]
                           : static_cast<int32_t>(std::max<int64_t>(document_start[q], first_query + q - window + 1));
  std::fill(start + rows, start + padded_rows, start[rows - 1]);
  return *std::min_element(start, start + rows);
}

// Query q of a panel of so many sees keys start[q] .. first_query + q; keys are counted from `first_key`, where the block
// begins.
template <int64_t PANEL>
class Visible {
 public:
  Visible(const int32_t* start, int64_t first_query, int64_t first_key)
      : start_(start), first_query_(first_query), first_key_(first_key) {}

  // How many of the block's first `cols` keys any query may see: those past the last query, or a block of other documents,
  // count 0.
  int64_t keys(int64_t cols) const {
    if (first_key_ + cols <= *std::min_element(start_, start_ + PANEL)) return 0;
    return std::clamp<int64_t>(first_query_ + PANEL - first_key_, 0, cols);
  }
  // Whether every query sees the first `keys` keys.
  bool all(int64_t keys) const {
    return first_key_ + keys <= first_query_ + 1 && *std::max_element(start_, start_ + PANEL) <= first_key_;
  }
  // Lanes of vector v of the panel that see `key`.
  HWY_INLINE auto mask(int64_t key, int v) const {
    const hn::RebindToSigned<HighwayLanes::Tag> tag;
    const auto lane = v * HighwayLanes::kWidth;
    const auto index = hn::Set(tag, static_cast<int32_t>(first_key_ + key));
    const auto query = hn::Iota(tag, static_cast<int32_t>(first_query_ + lane));
    const auto hidden = hn::Or(hn::Gt(index, query), hn::Lt(index, hn::LoadU(tag, start_ + lane)));
    return hn::Not(hn::RebindMask(HighwayLanes::Tag(), hidden));
  }

 private:
  const int32_t* start_;
  int64_t first_query_, first_key_;
};

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
