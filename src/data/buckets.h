#pragma once
// Lengths to which rows are padded: few, so that each has a Program of its own, chosen from how often each length occurs.
// Knows lengths alone.

#include <cstdint>
#include <span>
#include <vector>

namespace snug {

// At most `most` ascending lengths, multiples of 64 but for the last one where it is `seq_len`, so that rows of `lengths`
// (each 1 … seq_len) padded to the next of them have as little padding in all as such lengths allow. The last one is the
// longest row's, rounded up. With `most` 1: seq_len alone. (Lengths above 65,536 are told apart in coarser steps.)
std::vector<int64_t> choose_buckets(std::span<const int32_t> lengths, int64_t seq_len, int64_t most);

// The index of the shortest bucket that holds `length`.
int64_t bucket_of(std::span<const int64_t> buckets, int64_t length);

}  // namespace snug
