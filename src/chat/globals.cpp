#include "chat/globals.h"

#include <fmt/format.h>

#include "chat/interpreter.h"
#include "chat/namespace.h"
#include "chat/operators.h"
#include "chat/python_text.h"

namespace snug::chat {
namespace {

constexpr int64_t kMostRange = 100'000;  // jinja2.sandbox.MAX_RANGE

Value range(Interpreter&, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "range", "/start ?stop ?step");
  const int64_t start = bound.has(1) ? bound.integer(0, 0) : 0;
  const int64_t stop = bound.has(1) ? bound.integer(1, 0) : bound.integer(0, 0);
  const int64_t step = bound.integer(2, 1);
  if (step == 0) throw Error("range() needs a step other than zero");
  std::vector<Value> numbers;
  Charge charge;
  for (int64_t number = start; step > 0 ? number < stop : number > stop;) {
    if (static_cast<int64_t>(numbers.size()) == kMostRange) throw Error("a range has more than 100000 numbers");
    charge.add(sizeof(Value));
    numbers.push_back(Value::integer(number));
    if (__builtin_add_overflow(number, step, &number)) break;
  }
  spend(static_cast<int64_t>(numbers.size()));
  charge.release();
  return Value::range(std::move(numbers), start, stop, step);
}

// dict(mapping or pairs, names=values)
Dict make_dict(const CallArguments& arguments) {
  if (arguments.positional.size() > 1) throw Error("dict() takes at most one value without name");
  Dict entries;
  if (!arguments.positional.empty()) {
    const Value& first = arguments.positional[0];
    if (first.is(Kind::dict)) {
      for (const auto& [key, value] : first.dict()->entries()) entries.set(key, value);
    } else {
      const SequenceRef pairs = iterate(first);
      for (const Value& pair : pairs->items) {
        const SequenceRef two = iterate(pair);
        if (two->items.size() != 2) throw Error("dict() needs pairs");
        entries.set(two->items[0], two->items[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) entries.set(name, value);
  spend(entries.size());
  return entries;
}

Value make_namespace(Interpreter& interpreter, CallArguments& arguments) {
  auto space = std::make_shared<Namespace>();
  interpreter.keep(space);
  const Dict attributes = make_dict(arguments);
  for (const auto& [name, value] : attributes.entries()) {
    if (!name.is_string()) throw Error("attributes of a namespace need names");
    space->set(name.text()->bytes(), value);
  }
  return Value::object(space);
}

class TemplateDict final : public Callable {
 public:
  std::string_view type_name() const override { return "TemplateDict"; }
  Value call(Interpreter&, CallArguments& arguments) override { return Value::dict(make_dict(arguments)); }
  std::optional<Value> attribute(std::string_view name) override {
    if (name != "fromkeys") return std::nullopt;
    return make_function([](Interpreter&, CallArguments& arguments) {
      const Bound bound = match_arguments(arguments, "fromkeys", "/keys ?value");
      Dict entries;
      const SequenceRef keys = iterate(bound.at(0));
      for (const Value& key : keys->items) entries.set(key, bound.value(1, Value::none()));
      return Value::dict(std::move(entries));
    });
  }
};

// cycler(…): next() gives its items in turn.
class Cycler final : public Object, public std::enable_shared_from_this<Cycler> {
 public:
  explicit Cycler(std::vector<Value> items) : items_(std::move(items)) {}
  std::string_view type_name() const override { return "Cycler"; }
  std::optional<Value> attribute(std::string_view name) override {
    const auto self = shared_from_this();
    if (name == "current") return items_[at_];
    if (name == "next") {
      return make_function([self](Interpreter&, CallArguments&) {
        Value value = self->items_[self->at_];
        self->at_ = (self->at_ + 1) % self->items_.size();
        return value;
      });
    }
    if (name == "reset") {
      return make_function([self](Interpreter&, CallArguments&) {
        self->at_ = 0;
        return Value::none();
      });
    }
    return std::nullopt;
  }

 private:
  std::vector<Value> items_;
  size_t at_ = 0;
};

Value make_cycler(Interpreter&, CallArguments& arguments) {
  if (arguments.positional.empty() || !arguments.named.empty()) throw Error("cycler() needs items");
  return Value::object(std::make_shared<Cycler>(std::move(arguments.positional)));
}

// joiner(separator): empty at the first call, the separator after.
Value make_joiner(Interpreter&, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "joiner", "?sep");
  return make_function([separator = bound.value(0, Value::text(", ")), used = false](Interpreter&, CallArguments&) mutable {
    if (used) return separator;
    used = true;
    return Value::text(std::string());
  });
}

Value raise_exception(Interpreter&, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "raise_exception", "message");
  throw Error(fmt::format("the template refuses this conversation: {}", to_str(bound.at(0))->view()), {},
              "bring the conversation into the form the template asks for");
}

// datetime.now().strftime(format), as Python hands it to the C library.
Value strftime_now(Interpreter& interpreter, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "strftime_now", "format");
  const TextRef& format = bound.text(0);
  if (format->size() > 1000) throw Error("the format of a date is longer than 1000 bytes");
  std::string prepared;
  for (size_t i = 0; i < format->view().size(); ++i) {
    const char c = format->view()[i];
    const char next = c == '%' && i + 1 < format->view().size() ? format->view()[i + 1] : '\0';
    if (next == 'f') {
      prepared += "000000";                   // microseconds
    } else if (next != 'z' && next != 'Z') {  // Python's clock has no zone
      prepared += c;
      if (next != '\0') prepared += next;
    }
    if (next != '\0') ++i;
  }
  const std::tm now = interpreter.now();
  std::string text(prepared.size() * 32 + 64, '\0');
  text.resize(std::strftime(text.data(), text.size(), prepared.c_str(), &now));
  return Value::text(std::move(text));
}

}  // namespace

std::optional<Value> global_function(std::string_view name) {
  if (name == "range") return make_function(range);
  if (name == "namespace") return make_function(make_namespace);
  if (name == "dict") return Value::object(std::make_shared<TemplateDict>());
  if (name == "cycler") return make_function(make_cycler);
  if (name == "joiner") return make_function(make_joiner);
  if (name == "raise_exception") return make_function(raise_exception);
  if (name == "strftime_now") return make_function(strftime_now);
  if (name == "lipsum") throw Error("lipsum is not supported in chat templates");
  return std::nullopt;
}

}  // namespace snug::chat
