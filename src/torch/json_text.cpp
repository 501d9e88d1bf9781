#include "torch/json_text.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "torch/words.h"

namespace snug {

namespace {

constexpr size_t kMostOthers = size_t{64} << 10;
constexpr size_t kLongestString = size_t{64} << 10;

bool holds_text(std::string_view key) {
  constexpr std::array<std::string_view, 20> kKeys = {"log",         "msg",         "message",    "text",      "exc",
                                                      "exception",   "exc_info",    "exc_text",   "traceback", "stack",
                                                      "stacktrace",  "stack_trace", "stack_info", "error",     "err",
                                                      "textPayload", "line",        "evalue",     "output",    "MESSAGE"};
  return std::ranges::find(kKeys, key) != kKeys.end();
}

}  // namespace

bool looks_like_json(std::string_view line) {
  const size_t brace = line.find_first_not_of(' ');
  if (brace == std::string_view::npos || line[brace] != '{') return false;
  const size_t quote = line.find_first_not_of(' ', brace + 1);
  return quote != std::string_view::npos && line[quote] == '"';
}

void JsonText::feed(std::string_view part) {
  for (const char c : part) {
    if (!in_string_) {
      outside(c);
    } else if (escape_) {
      escaped(c);
    } else {
      in_string(c);
    }
  }
}

void JsonText::in_string(char c) {
  if (c == '\\') {
    escape_ = true;
  } else if (c == '"') {
    end_string();
  } else {
    put(c);
  }
}

void JsonText::escaped(char c) {
  if (hex_ > 0) {
    const int digit = hex_digit(c);
    code_ = code_ * 16 + static_cast<uint32_t>(std::max(digit, 0));
    escape_ = --hex_ > 0;
    const bool surrogate = code_ >= 0xD800 && code_ < 0xE000;
    if (!escape_ && !surrogate) append_utf8(text_, code_);
    return;
  }
  escape_ = c == 'u';
  if (c == 'n' || c == 'r') {
    emit();
  } else if (c == 'u') {
    hex_ = 4;
    code_ = 0;
  } else {
    put(c == 't' ? ' ' : c);
  }
}

void JsonText::outside(char c) {
  if (c == '"') {
    in_string_ = true;
    is_text_ = after_colon_ && holds_text(key_);
  } else if (c == ':') {
    after_colon_ = true;
  } else if (c == '[') {
    array_ += after_colon_ ? 1 : 0;
  } else if (c == ']') {
    array_ = std::max(array_ - 1, 0);
  } else if (c == '{' || (c == ',' && array_ == 0)) {
    after_colon_ = false;
    array_ = 0;
  }
}

void JsonText::end_string() {
  in_string_ = false;
  if (!after_colon_) {
    key_ = text_.substr(0, 64);
    text_.clear();
  } else if (!text_.empty()) {
    emit();
  }
}

void JsonText::put(char c) {
  text_ += c;
  if (text_.size() >= kLongestString) emit();
}

// Texts under other keys wait until it is sure that there is no better.
void JsonText::emit() {
  if (is_text_) {
    told_ = true;
    sink_(text_);
  } else if (after_colon_ && !told_ && others_.size() < kMostOthers) {
    others_ += text_;
    others_ += '\n';
  }
  text_.clear();
}

void JsonText::finish() {
  if (in_string_ && !text_.empty()) emit();
  for (size_t begin = 0; !told_ && begin < others_.size();) {
    const size_t end = others_.find('\n', begin);
    sink_(std::string_view(others_).substr(begin, end - begin));
    begin = end + 1;
  }
  *this = JsonText(std::move(sink_));
}

}  // namespace snug
