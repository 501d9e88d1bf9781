#include "report/page.h"

namespace snug {

void write_page(std::string_view page, const PageSink& sink, const std::function<void(std::string_view name)>& fill) {
  for (size_t open = page.find("{{"); open != std::string_view::npos; open = page.find("{{")) {
    const size_t close = page.find("}}", open);
    sink(page.substr(0, open));
    fill(page.substr(open + 2, close - open - 2));
    page.remove_prefix(close + 2);
  }
  sink(page);
}

std::string without_markup(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace snug
