#include "advise/max_memory.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace snug::testing {

namespace {

TEST(MaxMemory, accelerators_keep_their_order_then_come_host_and_disk) {
  const std::vector<DeviceRoom> expected = {{"1", DeviceKind::accelerator, int64_t{24} << 30},
                                            {"0", DeviceKind::accelerator, 80'000'000'000},
                                            {"cpu", DeviceKind::host, int64_t{200} << 30},
                                            {"disk", DeviceKind::disk, int64_t{1} << 40}};
  EXPECT_EQ(parse_max_memory("cpu:200GiB, 1:24GiB, disk:1TiB ,0:80GB"), expected);
}

std::string message_of(const std::string& text) {
  try {
    parse_max_memory(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(MaxMemory, bad_input_is_one_line_with_the_nearest_valid_form) {
  const std::pair<const char*, const char*> kCases[] = {{"0:80GBB", "did you mean 0:80GB?"},
                                                        {"0:80Gi", "did you mean 0:80GiB?"},
                                                        {"0:80", "did you mean 0:80GiB?"},
                                                        {"0:80G", "did you mean 0:80GiB?"},
                                                        {"0:-5GiB", "did you mean 0:5GiB?"},
                                                        {"0:", "did you mean 0:24GiB?"},
                                                        {"80GiB", "did you mean 0:80GiB?"},
                                                        {"cpu", "did you mean cpu:24GiB?"},
                                                        {"cuda:1:8GiB", "did you mean 1:8GiB?"},
                                                        {"gpu:24GB", "did you mean 0:24GB?"},
                                                        {"cpus:24GB", "did you mean cpu:24GB?"},
                                                        {"ram:24GB", "did you mean cpu:24GB?"},
                                                        {"-1:24GB", "did you mean 1:24GB?"},
                                                        {"0:0GiB", "leave 0 out"},
                                                        {"0:8GiB,0:9GiB", "comes twice"},
                                                        {"", "write 0:80GiB"},
                                                        {" ", "write 0:80GiB"},
                                                        {"0:8GiB,", "an entry is empty"}};
  for (const auto& [text, part] : kCases) {
    const std::string message = message_of(text);
    EXPECT_NE(message.find(part), std::string::npos) << text << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

// The form that a message offers must be one that is taken.
TEST(MaxMemory, what_is_proposed_is_valid_whatever_was_written) {
  std::mt19937 random(11);
  constexpr std::string_view kLetters = "019.:-, cpudiskGgMiBb\n\xff";
  for (int trial = 0; trial < 20000; ++trial) {
    std::string text;
    for (size_t i = 0, n = random() % 14; i < n; ++i) text += kLetters[random() % kLetters.size()];
    const std::string message = message_of(text);
    const size_t at = message.find("did you mean ");
    if (at == std::string::npos) continue;
    const size_t begin = at + std::string_view("did you mean ").size();
    const std::string proposed = message.substr(begin, message.rfind("?)") - begin);
    const std::string again = message_of(proposed);
    EXPECT_TRUE(again == "accepted" || again.find("leaves nothing") != std::string::npos) << text << " -> " << proposed;
  }
}

TEST(MaxMemory, more_than_64_devices_and_long_entries_are_refused) {
  std::string many;
  for (int i = 0; i < 65; ++i) many += (i == 0 ? "" : ",") + std::to_string(i) + ":1GiB";
  EXPECT_NE(message_of(many).find("more than 64"), std::string::npos);
  EXPECT_LT(message_of(std::string(1'000'000, 'x')).size(), 300U);
  EXPECT_LT(message_of("0:" + std::string(1'000'000, '9')).size(), 300U);
}

}  // namespace

}  // namespace snug::testing
