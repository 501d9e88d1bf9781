// The test vectors of RFC 4648, section 10, and bytes above 127.

#include "base/base64.h"

#include <gtest/gtest.h>

#include <string_view>

namespace snug {
namespace {

std::string encoded(std::string_view text) {
  std::string out = "=";
  append_base64(out, std::as_bytes(std::span(text)));
  return out.substr(1);
}

TEST(Base64, EncodesAsTheStandardSays) {
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foo"), "Zm9v");
  EXPECT_EQ(encoded("foob"), "Zm9vYg==");
  EXPECT_EQ(encoded("fooba"), "Zm9vYmE=");
  EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
  EXPECT_EQ(encoded("\xff\xfb\xfe"), "//v+");
}

}  // namespace
}  // namespace snug
