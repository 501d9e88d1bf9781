#include "base/hugging_face.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace snug {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::filesystem::path hugging_face_home() {
  if (const std::string home = environment("HF_HOME"); !home.empty()) return home;
  const std::string cache = environment("XDG_CACHE_HOME");
  return (cache.empty() ? std::filesystem::path(environment("HOME")) / ".cache" : std::filesystem::path(cache)) /
         "huggingface";
}

bool is_repository(std::string_view name) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
  const size_t slash = name.find('/');
  const auto is_part = [&](std::string_view part) {
    return !part.empty() && part.front() != '.' && part.size() <= 96 && std::all_of(part.begin(), part.end(), plain);
  };
  return slash == std::string_view::npos ? is_part(name) : is_part(name.substr(0, slash)) && is_part(name.substr(slash + 1));
}

}  // namespace snug
