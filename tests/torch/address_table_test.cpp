#include "torch/address_table.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>

namespace snug {
namespace {

// Against std::map: few addresses, so that they meet, and gaps are closed over the table's end.
TEST(AddressTable, knows_what_lies_where_while_things_come_and_go) {
  for (const int64_t distinct : {3, 40, 700}) {
    std::mt19937 random(17);
    AddressTable<int> table;
    std::map<int64_t, int> truth;
    for (int step = 0; step < 20000; ++step) {
      const int64_t address = static_cast<int64_t>(random() % static_cast<uint64_t>(distinct)) * 512;
      if (random() % 2 == 0 && !truth.contains(address)) {
        table.insert(address, step);
        truth[address] = step;
      } else {
        table.erase(address);
        truth.erase(address);
      }
      const int64_t asked = static_cast<int64_t>(random() % static_cast<uint64_t>(distinct)) * 512;
      const auto found = truth.find(asked);
      const int* const value = table.find(asked);
      ASSERT_EQ(value != nullptr, found != truth.end()) << step;
      if (value == nullptr) continue;
      ASSERT_EQ(*value, found->second) << step;
    }
    for (const auto& [address, value] : truth) {
      const int* const found = table.find(address);
      ASSERT_TRUE(found != nullptr && *found == value) << address;
    }
  }
}

TEST(AddressTable, has_nothing_at_addresses_that_none_has) {
  AddressTable<int> table;
  for (const int64_t address : {int64_t{-1}, int64_t{0}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_EQ(table.find(address), nullptr);
    table.erase(address);
  }
  table.insert(0, 7);
  for (const int64_t address : {int64_t{-1}, int64_t{512}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_EQ(table.find(address), nullptr);
    table.erase(address);
  }
  EXPECT_EQ(*table.find(0), 7);
}

}  // namespace
}  // namespace snug
