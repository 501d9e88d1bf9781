#pragma once
// namespace(…): the one thing whose attributes a template may set.

#include "chat/interpreter.h"

namespace snug::chat {

class Namespace final : public Object, public Holder {
 public:
  std::string_view type_name() const override { return "Namespace"; }
  std::optional<Value> attribute(std::string_view name) override {
    const Value* found = attributes_.find(name);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  std::optional<std::string> printed() const override;
  // Throws Error for names that transformers keeps templates from setting.
  void set(const std::string& name, const Value& value);
  void let_go() override { attributes_ = Dict(); }

 private:
  Dict attributes_;
  mutable int printing_ = 0;
};

}  // namespace snug::chat
