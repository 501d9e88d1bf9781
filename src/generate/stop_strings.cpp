#include "generate/stop_strings.h"

#include <algorithm>

namespace snug {

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  std::erase_if(strings_, [](const std::string& s) { return s.empty(); });
}

std::string StopStrings::push(std::string_view text) {
  if (stopped_) return {};
  held_ += text;
  size_t end = std::string::npos;
  for (const std::string& stop : strings_) end = std::min(end, held_.find(stop));
  if (end != std::string::npos) {
    stopped_ = true;
    std::string shown = held_.substr(0, end);
    held_.clear();
    return shown;
  }
  size_t kept = 0;  // the longest end of the text that begins a stop string
  for (const std::string& stop : strings_)
    for (size_t length = std::min(stop.size() - 1, held_.size()); length > kept; --length)
      if (held_.ends_with(std::string_view(stop).substr(0, length))) kept = length;
  std::string shown = held_.substr(0, held_.size() - kept);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopStrings::finish() {
  std::string rest;
  rest.swap(held_);
  return rest;
}

}  // namespace snug
