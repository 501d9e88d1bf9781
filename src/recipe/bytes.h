#pragma once
// Sizes of memory as people write them. Decimal and binary units are kept apart: a "24 GB" card and "24 GiB" differ by 7 %.

#include <cstdint>
#include <string>
#include <string_view>

namespace snug {

// "24GB" is 24·10⁹ bytes, "24GiB" 24·2³⁰, "1.5TiB" and "123456789B" likewise; case and one space before the unit don't
// matter. A bare number or "24G" is refused as ambiguous. Rounds down to whole bytes. Throws Error with `where`.
int64_t parse_bytes(std::string_view text, const std::string& where = {});

// "21.3 GiB", "512 B": binary units, three or four digits, for people.
std::string format_bytes(int64_t bytes);

}  // namespace snug
