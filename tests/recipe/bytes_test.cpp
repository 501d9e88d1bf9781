#include "recipe/bytes.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace snug {
namespace {

TEST(Bytes, DecimalAndBinaryUnitsAreKeptApart) {
  EXPECT_EQ(parse_bytes("24GB"), 24'000'000'000);
  EXPECT_EQ(parse_bytes("24GiB"), int64_t{24} << 30);
  EXPECT_EQ(parse_bytes("24 gib"), int64_t{24} << 30);
  EXPECT_EQ(parse_bytes("1.5TiB"), int64_t{3} << 39);
  EXPECT_EQ(parse_bytes("123456789B"), 123456789);
  EXPECT_EQ(parse_bytes("0.1GB"), 100'000'000);
  EXPECT_EQ(parse_bytes("0B"), 0);
}

TEST(Bytes, AmbiguousOrImpossibleSizesAreRefused) {
  for (const char* bad : {"", "24", "24G", "24g", "GB", "-1GB", "1..5GB", "1.5.2GB", "24 GB ", "24PB", "1e3GB",
                          "99999999TiB", "9999999999999999999B", ".",
                          "."
                          "B",
                          "nanGB"}) {
    EXPECT_THROW(parse_bytes(bad), Error) << bad;
  }
}

TEST(Bytes, AreShownInBinaryUnits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes((int64_t{1} << 30) - 1), "1.00 GiB");
  EXPECT_EQ(format_bytes(22'870'701'015), "21.3 GiB");
  EXPECT_EQ(format_bytes(INT64_MAX), "8.00 EiB");
  EXPECT_EQ(format_bytes(-2048), "-2.00 KiB");
}

}  // namespace
}  // namespace snug
