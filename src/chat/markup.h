#pragma once
// Strings that are HTML already. Chat templates do not escape, yet the filter `safe` stands in several: a string that went
// through it escapes what is added to it with "+", as markupsafe does.

#include "chat/text.h"

namespace snug::chat {

// `text` with & < > ' " as HTML writes them; itself if it is HTML already.
TextRef escape_markup(const TextRef& text);
// a + b: if one of them is HTML, the other is escaped.
TextRef join_markup(const TextRef& a, const TextRef& b);

}  // namespace snug::chat
