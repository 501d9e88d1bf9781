#include "torch/profiler_trace.h"

#include <gtest/gtest.h>

#include <string>

namespace snug::torch_tests {

namespace {

std::string memory_event(int64_t bytes, int64_t allocated, int64_t reserved, double time, int type = 1, int device = 0) {
  return R"({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": )" +
         std::to_string(time) + R"(, "args": {"Total Reserved": )" + std::to_string(reserved) + R"(, "Total Allocated": )" +
         std::to_string(allocated) + R"(, "Bytes": )" + std::to_string(bytes) + R"(, "Addr": 1, "Device Id": )" +
         std::to_string(device) + R"(, "Device Type": )" + std::to_string(type) + "}}";
}

std::string trace_of(const std::string& events) {
  return R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A"}], "traceEvents": [)" + events +
         R"(], "traceName": "x"})";
}

ProfilerTrace read(std::string_view text, size_t piece = 1 << 20) {
  ProfilerTraceReader reader;
  for (size_t at = 0; at < text.size(); at += piece) reader.feed(text.substr(at, piece));
  return reader.finish();
}

}  // namespace

TEST(ProfilerTrace, TellsThePeakOfEachDeviceAndItsTime) {
  const std::string text =
      trace_of(memory_event(100, 100, 2048, 1000000) + ", {\"ph\": \"X\", \"name\": \"a ] } [memory\"}, " +
               memory_event(5000, 5100, 8192, 3000000) + ",\n" + memory_event(-5000, 100, 8192, 4000000) + "," +
               memory_event(64, 64, 0, 5000000, 0, -1));
  for (const size_t piece : {size_t{1}, size_t{13}, size_t{1} << 20}) {
    const ProfilerTrace trace = read(text, piece);
    EXPECT_TRUE(trace.whole);
    EXPECT_EQ(trace.events, 5);
    EXPECT_EQ(trace.memory_events, 4);
    ASSERT_EQ(trace.devices.size(), 2u);
    EXPECT_EQ(trace.devices[0].type, 1);
    EXPECT_EQ(trace.devices[0].peak_allocated_bytes, 5100);
    EXPECT_EQ(trace.devices[0].peak_reserved_bytes, 8192);
    EXPECT_DOUBLE_EQ(trace.devices[0].peak_microseconds, 2000000);
    EXPECT_EQ(trace.devices[0].largest_bytes, 5000);
    EXPECT_EQ(trace.devices[0].last_allocated_bytes, 100);
    EXPECT_EQ(trace.devices[1].type, 0);
  }
}

TEST(ProfilerTrace, ACutTraceIsReadAsFarAsItGoes) {
  const std::string text = trace_of(memory_event(100, 100, 2048, 1) + "," + memory_event(100, 200, 2048, 2));
  for (size_t length = 0; length < text.size(); ++length) {
    const ProfilerTrace trace = read(std::string_view(text).substr(0, length));
    EXPECT_LE(trace.memory_events, 2);
    for (const TracedDevice& device : trace.devices) EXPECT_LE(device.peak_allocated_bytes, 200);
  }
  EXPECT_FALSE(read(std::string_view(text).substr(0, text.size() - 30)).whole);
}

TEST(ProfilerTrace, EventsThatAreTooLongOrBrokenArePassedOver) {
  const std::string huge = R"({"name": "[memory]", "args": {"x": ")" + std::string(2 << 20, 'a') + "\"}}";
  const ProfilerTrace trace = read(trace_of(huge + R"(,{"name": "[memory]", nonsense},)" + memory_event(1, 2, 3, 4)));
  EXPECT_EQ(trace.passed_over, 2);
  EXPECT_EQ(trace.memory_events, 1);
}

TEST(ProfilerTrace, IsKnownByItsFirstBytes) {
  EXPECT_TRUE(looks_like_trace(trace_of("")));
  EXPECT_TRUE(looks_like_trace("[{\"ph\": \"X\"}]"));
  EXPECT_FALSE(looks_like_trace("CUDA out of memory"));
  EXPECT_FALSE(looks_like_trace("{\"level\": \"error\"}"));
}

}  // namespace snug::torch_tests
