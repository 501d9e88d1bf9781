#include "chat/markup.h"

namespace snug::chat {

TextRef escape_markup(const TextRef& text) {
  if (text->markup()) return text;
  TextBuilder builder;
  int64_t begin = 0;
  const auto write = [&](int64_t end, const Tag& tag) {
    std::string part;
    for (const char c : text->view().substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin))) {
      switch (c) {
        case '&': part += "&amp;"; break;
        case '<': part += "&lt;"; break;
        case '>': part += "&gt;"; break;
        case '\'': part += "&#39;"; break;
        case '"': part += "&#34;"; break;
        default: part += c;
      }
    }
    builder.add(part, tag);
    begin = end;
  };
  for (const Run& run : text->runs()) write(run.end, run.tag);
  write(text->size(), {});
  return builder.take(true);
}

TextRef join_markup(const TextRef& a, const TextRef& b) {
  const bool markup = a->markup() || b->markup();
  TextBuilder builder;
  builder.add(markup ? *escape_markup(a) : *a);
  builder.add(markup ? *escape_markup(b) : *b);
  return builder.take(markup);
}

}  // namespace snug::chat
