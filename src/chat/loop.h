#pragma once
// The variable `loop` within a loop.

#include "chat/interpreter.h"

namespace snug::chat {

class Loop final : public Callable, public Holder, public std::enable_shared_from_this<Loop> {
 public:
  // `recursive`: the statement, if the loop may be called with other items; it runs in `scope` then.
  Loop(SequenceRef items, int64_t depth, const Statement* recursive, ScopeRef scope)
      : items_(std::move(items)),
        depth_(depth),
        recursive_(recursive),
        scope_(recursive == nullptr ? nullptr : std::move(scope)) {}

  void advance() { ++index_; }
  std::string_view type_name() const override { return "LoopContext"; }
  std::optional<std::string> printed() const override;
  std::optional<int64_t> length() override { return size(); }
  std::optional<Value> attribute(std::string_view name) override;
  Value call(Interpreter& interpreter, CallArguments& arguments) override;
  void let_go() override { scope_.reset(); }

 private:
  int64_t size() const { return static_cast<int64_t>(items_->items.size()); }
  Value cycle(const CallArguments& arguments) const;
  Value changed(const CallArguments& arguments);

  SequenceRef items_;
  int64_t index_ = 0;
  int64_t depth_;
  const Statement* recursive_;
  ScopeRef scope_;
  std::optional<Value> last_;  // what changed() saw before
};

}  // namespace snug::chat
