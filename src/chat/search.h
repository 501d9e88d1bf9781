#pragma once
// Where one text occurs in another, in time that grows with their lengths only.

#include <cstdint>
#include <string_view>

namespace snug::chat {

// The first byte at or after `from` (within `text`) where `wanted`, which is not empty, stands; -1: nowhere. Costs no steps:
// for callers that go through a text once and pay for it before.
int64_t seek_bytes(std::string_view text, std::string_view wanted, int64_t from);

// The first byte at or after `from` where `wanted` stands in `text`; -1: nowhere.
int64_t find_bytes(std::string_view text, std::string_view wanted, int64_t from);
// The last such byte; -1: nowhere.
int64_t find_last_bytes(std::string_view text, std::string_view wanted);

}  // namespace snug::chat
