#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "cli/count_rows.h"

namespace snug::cli {

bool is_terminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

TextStyle style_of(std::FILE* stream) {
  if (!is_terminal(stream)) return {};
  winsize size{};
  const bool known = ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col >= 60;
  return {.colour = std::getenv("NO_COLOR") == nullptr, .width = known ? std::min<int>(size.ws_col, 120) : 80};
}

CountedData Terminal::count_rows(const Plan& plan) { return cli::count_rows(plan); }

}  // namespace snug::cli
