// The forms that c10/core/AllocatorConfig.cpp takes, and what it does with each (2.9: the table that a snapshot then holds).

#include "torch/allocator_config.h"

#include <gtest/gtest.h>

namespace snug {
namespace {

constexpr int64_t kMiB = 1 << 20;

TEST(AllocatorConfig, every_setting_of_sizes_is_read) {
  const AllocatorConfig config = read_allocator_config(
      "max_split_size_mb:128, max_non_split_rounding_mb:64,large_segment_size_mb:32,garbage_collection_threshold:0.8,"
      "per_process_memory_fraction:0.5,expandable_segments:True,roundup_power2_divisions:4,backend:native");
  EXPECT_EQ(config.max_split_bytes, 128 * kMiB);
  EXPECT_EQ(config.max_non_split_rounding_bytes, 64 * kMiB);
  EXPECT_EQ(config.large_segment_bytes, 32 * kMiB);
  EXPECT_EQ(config.garbage_collection_threshold, 0.8);
  EXPECT_EQ(config.memory_fraction, 0.5);
  EXPECT_EQ(config.expandable_segments, true);
  ASSERT_TRUE(config.roundup_divisions);
  for (const int64_t divisions : *config.roundup_divisions) EXPECT_EQ(divisions, 4);
  EXPECT_TRUE(config.native);
  EXPECT_TRUE(config.unknown.empty());
}

TEST(AllocatorConfig, divisions_by_size) {
  const auto divisions = read_allocator_config("roundup_power2_divisions:[64:8,256:4,1024:2,>:1]").roundup_divisions;
  ASSERT_TRUE(divisions);
  // The first holds below too; intervals in between that are not named are off.
  EXPECT_EQ(*divisions, (std::array<int64_t, 16>{8, 8, 8, 8, 8, 8, 8, 0, 4, 0, 2, 1, 1, 1, 1, 1}));
}

TEST(AllocatorConfig, what_has_no_effect_is_passed_over_and_what_is_unknown_is_named) {
  const AllocatorConfig config = read_allocator_config(
      "pinned_use_background_threads:True,release_lock_on_cudamalloc:True,throw_on_cudamalloc_oom:True,"
      "graph_capture_record_stream_reuse:False,a_setting_of_tomorrow:[1:2,3:4],expandable_segments:False");
  EXPECT_EQ(config.unknown, std::vector<std::string>{"a_setting_of_tomorrow"});
  EXPECT_EQ(config.expandable_segments, false);
  EXPECT_FALSE(config.max_split_bytes);
}

TEST(AllocatorConfig, another_backend_is_not_ours) {
  EXPECT_FALSE(read_allocator_config("backend:cudaMallocAsync").native);
  EXPECT_TRUE(read_allocator_config("").native);
}

TEST(AllocatorConfig, nonsense_says_nothing) {
  const AllocatorConfig config = read_allocator_config(
      "max_split_size_mb:-4,garbage_collection_threshold:7,large_segment_size_mb:1,roundup_power2_divisions:[x:2,,]]],:,"
      "expandable_segments:yes,max_non_split_rounding_mb:99999999999999999999");
  EXPECT_FALSE(config.max_split_bytes);
  EXPECT_FALSE(config.garbage_collection_threshold);
  EXPECT_FALSE(config.large_segment_bytes);  // must hold what is up to 10 MiB large
  EXPECT_FALSE(config.roundup_divisions);
  EXPECT_FALSE(config.expandable_segments);
  EXPECT_FALSE(config.max_non_split_rounding_bytes);
  EXPECT_FALSE(read_allocator_config("roundup_power2_divisions:[").roundup_divisions == std::nullopt);
  EXPECT_EQ(read_allocator_config("max_split_size_mb:9000000000000000000").max_split_bytes, int64_t{1} << 50);
}

}  // namespace
}  // namespace snug
