#include <fmt/format.h>

#include <cmath>

#include "base/utf8.h"
#include "chat/characters.h"
#include "chat/format.h"
#include "chat/markup.h"
#include "chat/python_text.h"

namespace snug::chat {
namespace {

class PercentFormat {
 public:
  PercentFormat(const TextRef& format, const Value& values) : format_(*format), rest_(format->view()), values_(values) {}

  TextRef run() {
    while (!rest_.empty()) {
      const size_t percent = std::min(rest_.find('%'), rest_.size());
      const int64_t at = format_.size() - static_cast<int64_t>(rest_.size());
      out_.add(format_, at, at + static_cast<int64_t>(percent));
      rest_.remove_prefix(percent);
      if (!rest_.empty()) conversion();
    }
    const bool several = values_.is(Flavor::tuple);
    if ((several && used_ < values_.sequence()->items.size()) || (!several && used_ == 0 && !by_name_ && !takes_spare())) {
      throw Error("not all arguments converted during string formatting");
    }
    return out_.take(format_.markup());
  }

 private:
  // A dict or a list may be left unused.
  bool takes_spare() const { return values_.is(Kind::dict) || values_.is(Flavor::list); }

  char take() {
    if (rest_.empty()) throw Error("incomplete format");
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  const Value& next() {
    if (!values_.is(Flavor::tuple)) {
      if (used_++ > 0) throw Error("not enough arguments for format string");
      return values_;
    }
    if (used_ >= values_.sequence()->items.size()) throw Error("not enough arguments for format string");
    return values_.sequence()->items[used_++];
  }

  int64_t number() {
    if (!rest_.empty() && rest_.front() == '*') {
      take();
      const auto whole = next().as_integer();
      if (!whole) throw Error("* wants int");
      return *whole;
    }
    int64_t value = 0;
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      value = value * 10 + (take() - '0');
      if (value > Meter::kMostBytes) throw Error("a width is too large");
    }
    return value;
  }

  void conversion() {
    take();  // %
    if (!rest_.empty() && rest_.front() == '%') {
      take();
      return out_.add("%");
    }
    const Value* named = name();
    NumberStyle style;
    bool left = false;
    for (; !rest_.empty() && std::string_view("-+ #0").find(rest_.front()) != std::string_view::npos;) {
      const char flag = take();
      if (flag == '-') left = true;
      if (flag == '+' || (flag == ' ' && style.sign != '+')) style.sign = flag;
      if (flag == '#') style.alternate = true;
      if (flag == '0') style.fill = "0";
    }
    style.width = number();
    if (style.width < 0) {
      left = true;
      style.width = -style.width;
    }
    if (!rest_.empty() && rest_.front() == '.') {
      take();
      style.precision = std::max<int64_t>(number(), 0);
    }
    while (!rest_.empty() && std::string_view("hlL").find(rest_.front()) != std::string_view::npos) take();
    style.type = take();
    if (style.type == '%') return out_.add("%");
    convert(named != nullptr ? *named : next(), style, left);
  }

  const Value* name() {
    if (rest_.empty() || rest_.front() != '(') return nullptr;
    size_t end = 1;
    for (int depth = 1; end < rest_.size(); ++end) {
      depth += rest_[end] == '(' ? 1 : rest_[end] == ')' ? -1 : 0;
      if (depth == 0) break;
    }
    if (end >= rest_.size()) throw Error("incomplete format key");
    if (!values_.is(Kind::dict)) throw Error("format requires a mapping");
    const Value* found = values_.dict()->find(rest_.substr(1, end - 1));
    if (found == nullptr) throw Error(fmt::format("the format names '{}', which is not there", rest_.substr(1, end - 1)));
    rest_.remove_prefix(end + 1);
    by_name_ = true;
    return found;
  }

  void convert(const Value& value, NumberStyle style, bool left) {
    const std::string_view types = "sradiuoxXeEfFgGc";
    if (types.find(style.type) == std::string_view::npos)
      throw Error(fmt::format("unsupported format character '{}'", style.type));
    if (std::string_view("sra").find(style.type) != std::string_view::npos) return text(value, style, left);
    if (value.is_undefined()) refuse_undefined(value);
    if (style.type == 'c' && value.is_string() && value.text()->length() == 1) {
      style.type = 's';
      return text(value, style, left);
    }
    Value number = value;
    const bool whole = std::string_view("diuoxXc").find(style.type) != std::string_view::npos;
    if (!value.as_real()) throw Error(fmt::format("%{} format: a number is required, not {}", style.type, type_name(value)));
    if (whole && value.is(Kind::real)) {
      if (std::string_view("oxXc").find(style.type) != std::string_view::npos)
        throw Error("an integer is required, not float");
      if (!(std::abs(value.real()) < 9.2e18)) throw Error("a whole number does not fit in 63 bits");
      number = Value::integer(static_cast<int64_t>(value.real()));
    }
    if (style.type == 'i' || style.type == 'u') style.type = 'd';
    const int64_t digits = whole ? std::exchange(style.precision, -1) : -1;
    std::string shown = format_number(number, style);
    const size_t sign = !shown.empty() && std::string_view("+- ").find(shown[0]) != std::string_view::npos ? 1 : 0;
    if (digits > 1000) throw Error("a precision is larger than 1000");
    while (static_cast<int64_t>(shown.size() - sign) < digits) shown.insert(sign, "0");
    out_.add(*lay_out(make_text(std::move(shown)), style, left ? '<' : style.fill == "0" ? '=' : '>'));
  }

  void text(const Value& value, NumberStyle style, bool left) {
    TextRef shown = style.type == 's' ? to_str(value) : to_repr(value);
    if (style.type == 'a') throw Error("%a is not supported in chat templates");
    if (format_.markup()) shown = escape_markup(shown);
    if (style.precision >= 0 && style.precision < shown->length())
      shown = shown->piece(0, shown->offset_of(style.precision));
    style.fill = " ";
    out_.add(*lay_out(shown, style, left ? '<' : '>'));
  }

  const Text& format_;
  std::string_view rest_;
  const Value& values_;
  TextBuilder out_;
  size_t used_ = 0;
  bool by_name_ = false;
};

}  // namespace

TextRef format_percent(const TextRef& format, const Value& values) { return PercentFormat(format, values).run(); }

}  // namespace snug::chat
