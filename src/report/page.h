#pragma once
// Pages of web/ with their holes {{name}} filled. What fills them is never looked at for holes, and text from outside stands
// in a page as JSON without '<' only, so that nothing in it is markup.

#include <functional>
#include <string>
#include <string_view>

namespace snug {

using PageSink = std::function<void(std::string_view)>;

// Writes `page` to `sink` from front to back; `fill` writes what stands in the hole of a name.
void write_page(std::string_view page, const PageSink& sink, const std::function<void(std::string_view name)>& fill);

// '<' stands only inside JSON's strings, where an escape means the same.
std::string without_markup(std::string_view json);

}  // namespace snug
