#include "base/version.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace snug {

namespace {

TEST(Version, has_its_section_at_the_head_of_the_changes) {
  std::ifstream file(SNUG_SOURCE_DIR "/CHANGELOG.md");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string changes = text.str();
  const size_t first = changes.find("\n## ");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(changes.compare(first + 4, std::string(kVersion).size(), kVersion), 0) << changes.substr(first, 30);
}

}  // namespace

}  // namespace snug
