#pragma once
// The argument `attribute` of filters: "name", "address.city", a number, or several with commas.

#include <optional>
#include <string_view>
#include <vector>

#include "chat/value.h"

namespace snug::chat {

class Lookup {
 public:
  // `attribute` none: the item itself. With `fold` strings are compared without case; `otherwise` stands for what is
  // undefined.
  explicit Lookup(const std::optional<Value>& attribute, bool fold = false, std::optional<Value> otherwise = std::nullopt);
  Value operator()(const Value& item) const;

 private:
  std::vector<Value> path_;
  bool fold_;
  std::optional<Value> otherwise_;
};

// "a,b.c" as one Lookup for each; the keys of an item form a list.
std::vector<Lookup> lookups(const std::optional<Value>& attribute, bool fold);

}  // namespace snug::chat
