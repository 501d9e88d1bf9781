#include "chat/loop.h"

#include <fmt/format.h>

namespace snug::chat {

std::optional<std::string> Loop::printed() const { return fmt::format("<LoopContext {}/{}>", index_ + 1, size()); }

std::optional<Value> Loop::attribute(std::string_view name) {
  const auto& items = items_->items;
  if (name == "index") return Value::integer(index_ + 1);
  if (name == "index0") return Value::integer(index_);
  if (name == "first") return Value::boolean(index_ == 0);
  if (name == "last") return Value::boolean(index_ + 1 == size());
  if (name == "length") return Value::integer(size());
  if (name == "revindex") return Value::integer(size() - index_);
  if (name == "revindex0") return Value::integer(size() - index_ - 1);
  if (name == "depth") return Value::integer(depth_ + 1);
  if (name == "depth0") return Value::integer(depth_);
  if (name == "previtem") {
    return index_ == 0 ? Value::undefined("there is no previous item") : items[static_cast<size_t>(index_ - 1)];
  }
  if (name == "nextitem") {
    return index_ + 1 >= size() ? Value::undefined("there is no next item") : items[static_cast<size_t>(index_ + 1)];
  }
  const auto self = weak_from_this();
  if (name == "cycle") {
    return make_function([self](Interpreter&, CallArguments& arguments) { return self.lock()->cycle(arguments); });
  }
  if (name == "changed") {
    return make_function([self](Interpreter&, CallArguments& arguments) { return self.lock()->changed(arguments); });
  }
  return std::nullopt;
}

Value Loop::cycle(const CallArguments& arguments) const {
  if (arguments.positional.empty() || !arguments.named.empty()) throw Error("loop.cycle() needs items to cycle through");
  return arguments.positional[static_cast<size_t>(index_) % arguments.positional.size()];
}

Value Loop::changed(const CallArguments& arguments) {
  if (!arguments.named.empty()) throw Error("loop.changed() takes no named arguments");
  const Value now = Value::tuple(arguments.positional);
  if (last_ && equal(*last_, now)) return Value::boolean(false);
  last_ = now;
  return Value::boolean(true);
}

Value Loop::call(Interpreter& interpreter, CallArguments& arguments) {
  if (recursive_ == nullptr || !scope_) throw Error("the loop must be marked 'recursive' to be called");
  const Bound bound = match_arguments(arguments, "loop", "iterable");
  return Value::text(interpreter.render_loop(*recursive_, scope_, bound.at(0), depth_ + 1));
}

}  // namespace snug::chat
