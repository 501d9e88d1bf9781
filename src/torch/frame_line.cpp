#include "torch/frame_line.h"

#include <algorithm>

#include "base/trimmed.h"
#include "torch/words.h"

namespace snug {

namespace {

constexpr size_t kLongestName = 4096;
constexpr size_t kNone = std::string_view::npos;

// "Module._call_impl(self, *args)" without its arguments.
std::string function_name(std::string_view text) {
  text = trimmed(text);
  if (!text.starts_with('<')) text = text.substr(0, text.find_first_of("( "));
  return std::string(text.substr(0, std::min(text.size(), kLongestName)));
}

FrameLine make(FrameForm form, std::string_view file, std::string_view line, std::string_view function) {
  FrameLine found;
  found.form = form;
  found.frame.file = std::string(trimmed(file).substr(0, kLongestName));
  found.frame.line = std::max<int64_t>(number_at(line), 0);
  found.frame.function = function_name(function);
  return found;
}

// File "main.py", line 445, in <module>
std::optional<FrameLine> standard(std::string_view line) {
  const size_t begin = line.find("File \"");
  if (begin == kNone) return std::nullopt;
  const size_t end = line.find("\", line ", begin + 6);
  if (end == kNone) return std::nullopt;
  const std::string_view digits = digits_of(line.substr(end + 8));
  const std::string_view rest = line.substr(end + 8 + digits.size());
  if (digits.empty()) return std::nullopt;
  constexpr std::string_view kIn = ", in ";
  auto found = make(FrameForm::standard, line.substr(begin + 6, end - begin - 6), digits,
                    rest.starts_with(kIn) ? rest.substr(kIn.size()) : std::string_view());
  found.cut = kIn.starts_with(rest);
  return found;
}

// …/nn/modules/linear.py", line 116, in forward · line 116, in forward: what a cut or a wrapped line left
std::optional<FrameLine> beheaded(std::string_view line) {
  const size_t quote = line.find("\", line ");
  if (quote == kNone && !line.starts_with("line ")) return std::nullopt;
  const std::string_view behind = line.substr(quote == kNone ? 5 : quote + 8);
  const std::string_view digits = digits_of(behind);
  const std::string_view rest = behind.substr(digits.size());
  if (digits.empty() || !rest.starts_with(", in ")) return std::nullopt;
  return make(FrameForm::standard, quote == kNone ? std::string_view() : line.substr(0, quote), digits, rest.substr(5));
}

// Cell In[5], line 3 · Input In [5], in <cell line: 1>() · File ~/train.py:12, in main(args)
std::optional<FrameLine> ipython_new(std::string_view line) {
  const bool cell = line.starts_with("Cell In") || line.starts_with("Input In");
  if (cell) {
    const size_t end = line.find(']');
    if (end == kNone) return std::nullopt;
    const size_t number = line.find("line", end);
    const size_t in = line.find(", in ", end);
    std::string_view digits;
    if (number != kNone) digits = digits_of(line.substr(std::min(line.find_first_of("0123456789", number), line.size())));
    return make(FrameForm::ipython, line.substr(0, end + 1), digits, in == kNone ? std::string_view() : line.substr(in + 5));
  }
  if (!line.starts_with("File ")) return std::nullopt;
  const size_t in = line.find(", in ");
  if (in == kNone) return std::nullopt;
  const std::string_view place = line.substr(5, in - 5);
  const size_t colon = place.rfind(':');
  const bool numbered =
      colon != kNone && colon + 1 < place.size() && digits_of(place.substr(colon + 1)).size() == place.size() - colon - 1;
  return make(FrameForm::ipython, numbered ? place.substr(0, colon) : place,
              numbered ? place.substr(colon + 1) : std::string_view(), line.substr(in + 5));
}

// /usr/lib/python3/module.py in forward(self, x) · [/usr/lib/module.py](https://localhost:8080/#) in forward(self)
// · <ipython-input-12-abc> in <module>()
std::optional<FrameLine> ipython_old(std::string_view line) {
  const size_t in = line.find(" in ");
  if (in == kNone || in == 0 || line.size() - in > 1024) return std::nullopt;
  std::string_view file = line.substr(0, in);
  if (file.starts_with('[')) {
    const size_t end = file.find("](");
    if (end == kNone) return std::nullopt;
    file = file.substr(1, end - 1);
  }
  const bool cell = file.starts_with("<ipython-input") || contains(file, "ipykernel_");
  if (!cell && !(file.ends_with(".py") || file.ends_with(".pyc"))) return std::nullopt;
  if (!cell && contains(file, " ") && !contains(file, "/") && !contains(file, "\\")) return std::nullopt;
  return make(FrameForm::ipython, file, {}, line.substr(in + 4));
}

// A path may hold blanks if it is an absolute one.
bool is_path(std::string_view file) {
  if (contains(file, "\"") || contains(file, "(") || contains(file, "[")) return false;
  const bool drive = file.size() > 3 && file[1] == ':' && (file[2] == '\\' || file[2] == '/');
  return !contains(file, " ") || drive || (file.starts_with('/') && !contains(file, ": "));
}

// src/model.py:123: in forward · src/model.py:123: OutOfMemoryError · /data/train.py:12 in main, whose end may be wrapped
std::optional<FrameLine> numbered(std::string_view line) {
  const size_t end = line.find(".py:");
  if (end > kLongestName) return std::nullopt;  // also where there is none
  const std::string_view file = line.substr(0, end + 3);
  const std::string_view digits = digits_of(line.substr(end + 4));
  std::string_view rest = line.substr(end + 4 + digits.size());
  if (digits.empty() || !is_path(file)) return std::nullopt;
  if (rest.starts_with(" in ")) return make(FrameForm::rich, file, digits, rest.substr(4));
  if (rest.empty() && (contains(file, "/") || contains(file, "\\"))) return make(FrameForm::rich, file, digits, {});
  if (!rest.starts_with(':') || contains(file, " ")) return std::nullopt;
  rest = trimmed(rest.substr(1));
  if (rest.starts_with("in ")) return make(FrameForm::pytest, file, digits, rest.substr(3));
  const bool ends = rest.empty() || (!contains(rest, " ") && (rest.ends_with("Error") || rest.ends_with("Exception")));
  if (!ends) return std::nullopt;
  return make(FrameForm::pytest, file, digits, {});
}

// /opt/conda/lib/python3.8/site-packages/torch/nn/functional.py(1243): dropout
std::optional<FrameLine> at_list(std::string_view line) {
  const size_t end = line.find("): ");
  const size_t open = end == kNone ? kNone : line.rfind('(', end);
  if (open == kNone || open == 0) return std::nullopt;
  const std::string_view digits = line.substr(open + 1, end - open - 1);
  const std::string_view file = line.substr(0, open);
  if (digits.empty() || digits_of(digits).size() != digits.size() || !(file.ends_with(".py") || file.starts_with('<')))
    return std::nullopt;
  return make(FrameForm::at_list, file, digits, line.substr(end + 3));
}

}  // namespace

std::optional<FrameLine> read_frame_line(std::string_view line) {
  line = trimmed(line);
  if (line.size() > 2 * kLongestName) return std::nullopt;
  if (auto found = standard(line)) return found;
  if (auto found = beheaded(line)) return found;
  if (auto found = ipython_new(line)) return found;
  if (auto found = numbered(line)) return found;
  if (auto found = at_list(line)) return found;
  return ipython_old(line);
}

std::optional<std::string_view> boxed_code(std::string_view line, int64_t& number) {
  constexpr std::string_view kBar = "│";
  line = trimmed(line);
  const std::string_view digits = digits_of(line);
  std::string_view rest = trimmed(line.substr(digits.size()));
  if (digits.empty() || !rest.starts_with(kBar)) return std::nullopt;
  while (rest.starts_with(kBar)) rest = trimmed(rest.substr(kBar.size()));
  number = number_at(digits);
  return rest;
}

std::optional<std::string_view> arrow_code(std::string_view line, int64_t& number) {
  line = trimmed(line);
  const size_t arrow = line.find("> ");
  if (arrow == kNone || arrow < 2 || line.find_first_not_of('-') != arrow) return std::nullopt;
  const std::string_view rest = trimmed(line.substr(arrow + 1));
  const std::string_view digits = digits_of(rest);
  if (digits.empty()) return std::nullopt;
  number = number_at(digits);
  return trimmed(rest.substr(digits.size()));
}

}  // namespace snug
