#pragma once
#include "chat/chat_template.h"
#include "chat/interpreter.h"
namespace snug::chat {
class SpanFinder {
 public:
  SpanFinder(const Syntax& syntax, const std::function<std::tm()>& clock, const Conversation& c, const Variables& v) : syntax_(syntax), clock_(clock), c_(c), v_(v) {}
  Rendered render() const { return {}; }
  const Syntax& syntax_; const std::function<std::tm()>& clock_; const Conversation& c_; const Variables& v_;
};
}
