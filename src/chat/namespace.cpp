#include "chat/namespace.h"

#include <fmt/format.h>

#include "base/quote.h"
#include "chat/python_text.h"

namespace snug::chat {

std::optional<std::string> Namespace::printed() const {
  if (printing_ > 0) throw Error("a namespace that holds itself is printed");
  ++printing_;
  TextBuilder out;
  write_repr(out, Value::dict(attributes_));
  --printing_;
  return fmt::format("<Namespace {}>", out.view());
}

void Namespace::set(const std::string& name, const Value& value) {
  if (name.starts_with('_'))
    throw Error(fmt::format("{} cannot be set on a namespace", quote(name)), {}, "names begin with a letter");
  attributes_.set(name, value);
}

}  // namespace snug::chat
