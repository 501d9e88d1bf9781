#pragma once
// Files of web/ and D3, as the build put them into the program (cmake/embed.cmake).

#include <span>
#include <string_view>

namespace snug::cli {

struct Asset {
  std::string_view name;
  std::string_view bytes;
};

std::span<const Asset> assets();

}  // namespace snug::cli
