#pragma once
// One line of a traceback that names a frame, in any of the forms that Python, IPython, pytest, rich and pybind11 print.

#include <optional>
#include <string_view>

#include "torch/traceback.h"

namespace snug {

enum class FrameForm { standard, ipython, pytest, rich, at_list };

struct FrameLine {
  Frame frame;
  FrameForm form = FrameForm::standard;
  bool cut = false;  // the line ends before the function's name
};

std::optional<FrameLine> read_frame_line(std::string_view line);

// "----> 12 loss.backward()": the code behind the arrow; none for another line.
std::optional<std::string_view> arrow_code(std::string_view line, int64_t& number);

// "290 │   │   loss.backward()" in a box of rich: the code, without the guides of its indent.
std::optional<std::string_view> boxed_code(std::string_view line, int64_t& number);

}  // namespace snug
