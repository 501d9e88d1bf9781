#pragma once
// Keys of other trainers that are no keys of ours: those without effect here, and those that ask for something that snug
// does not do, which are refused unless they are switched off.

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace snug {

// True if `key` (underscores) is known and was passed over; false if it is unknown. Throws Error (without `where`) if
// `values` switch on something that is not supported. `values` empty: null, or an empty list or map.
bool pass_over_foreign_key(std::string_view key, std::span<const std::string> values);

// The keys that are known and have no effect here, whatever their value.
std::span<const std::string_view> harmless_keys();

// True if a value means "off": false, no, none, null, 0, the empty text.
bool means_off(std::string_view value);

}  // namespace snug
