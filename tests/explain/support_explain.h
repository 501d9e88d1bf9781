#pragma once
// Answers to texts, for tests of what is advised.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "explain/explanation.h"

namespace snug::explain_tests {

inline Explanation answer_to(const std::string& text) {
  auto e = explain_log(read_oom_log(text));
  EXPECT_TRUE(e) << text;
  return e ? std::move(*e) : Explanation{};
}

// The place of the first advice that holds `part`; -1 if none does.
inline int place_of(const Explanation& e, std::string_view part) {
  for (size_t i = 0; i < e.advice.size(); ++i)
    if (e.advice[i].change.find(part) != std::string::npos) return static_cast<int>(i);
  return -1;
}

inline bool says(const Explanation& e, std::string_view part) { return place_of(e, part) >= 0; }

inline std::string first_of(const Explanation& e) { return e.advice.empty() ? std::string() : e.advice.front().change; }

}  // namespace snug::explain_tests
