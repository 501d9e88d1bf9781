#pragma once
// Holds back the end of a growing text while it may be the beginning of a string that ends the answer.

#include <string>
#include <string_view>
#include <vector>

namespace snug {

class StopStrings {
 public:
  // Empty strings never end a text.
  explicit StopStrings(std::vector<std::string> strings);

  // Adds text; returns what of it (and of what was held back) can be shown. Once a stop string has come, nothing more is.
  std::string push(std::string_view text);
  // The text that was held back, when no more comes.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> strings_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace snug
