#pragma once
// Python tracebacks in a log: the standard form, IPython's and Colab's, pytest's, rich's, and the "At:" lists of pybind11.
// Takes clean lines (torch/log_lines.h). Tells the frames; what they were doing is for torch/stage.h to say.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

struct Frame {
  std::string file;      // as the text has it
  int64_t line = 0;      // 0 if it does not say
  std::string function;  // without its arguments; empty if it does not say
  std::string code;      // the source line, if it was shown
};

struct Traceback {
  size_t begin = 0, end = 0;  // bytes of the text, with the line of the exception
  std::vector<Frame> frames;  // the innermost last; of more than 512 the outermost are dropped

  // The innermost frame of the user's own code, outside of installed packages and Python itself; null if there is none.
  const Frame* own() const;
  // The innermost frame that is not PyTorch's or Python's: of a trainer, a library, the user. Null if there is none.
  const Frame* caller() const;
};

// PyTorch's own: a folder above it may be called torch too, as environments are.
bool is_pytorchs(std::string_view file);

// One after the other, in the order of the text.
std::vector<Traceback> read_tracebacks(std::string_view text);

// The one that tells of the message at byte `at`: it holds it, or ends shortly before it, or is an "At:" list or pytest's
// place behind it. Null if none does.
const Traceback* traceback_of(const std::vector<Traceback>& all, std::string_view text, size_t at);

}  // namespace snug
