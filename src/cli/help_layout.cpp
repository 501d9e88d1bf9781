#include "cli/help_layout.h"

#include <algorithm>
#include <vector>

namespace snug::cli {

namespace {

constexpr size_t kRowMargin = 2;  // of rows

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

size_t indent_of(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

// Where the second column of a row begins: behind the first two spaces after the first; npos if there is none.
size_t second_column(std::string_view row) {
  const size_t gap = row.find("  ", indent_of(row));
  return gap == std::string_view::npos ? gap : row.find_first_not_of(' ', gap);
}

size_t longest_word(std::string_view text) {
  size_t longest = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    longest = std::max(longest, columns_of(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return longest;
}

class Layout {
 public:
  explicit Layout(size_t width) : width_(width) {}

  // Words from here on, going on below from column `indent` on.
  void fill(std::string_view words, size_t indent) {
    bool first = true;  // of a line
    for (size_t begin = words.find_first_not_of(' '); begin != std::string_view::npos;) {
      const size_t end = std::min(words.find(' ', begin), words.size());
      const std::string_view word = words.substr(begin, end - begin);
      const size_t wide = columns_of(word);
      if (!first && column_ + 1 + wide > width_) {
        end_line();
        pad_to(indent);
        first = true;
      }
      if (!first) put(" ", 1);
      put(word, wide);
      first = false;
      begin = words.find_first_not_of(' ', end);
    }
  }

  void pad_to(size_t column) {
    while (column_ < column) put(" ", 1);
  }

  void put(std::string_view text, size_t columns) {
    text_ += text;
    column_ += columns;
  }

  void end_line() {
    text_ += '\n';
    column_ = 0;
  }

  size_t column() const { return column_; }
  std::string take() { return std::move(text_); }

 private:
  size_t width_, column_ = 0;
  std::string text_;
};

// A line and those that go on with it.
struct Block {
  std::string text;
  size_t second = std::string_view::npos;
  bool prose = false;

  bool goes_on_with(std::string_view line) const {
    const size_t indent = indent_of(line);
    if (text.empty() || line.empty()) return false;
    if (prose) return indent == 0 && !is_command(line);
    if (indent > kRowMargin + 4) return true;  // below a row
    return indent == kRowMargin && indent_of(text) == kRowMargin && second == std::string_view::npos && !is_command(text) &&
           second_column(line) == std::string_view::npos && !is_command(line);
  }

  static bool is_command(std::string_view line) { return line.substr(indent_of(line)).starts_with("snug "); }
};

std::vector<Block> blocks_of(std::string_view text) {
  std::vector<Block> blocks;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t indent = indent_of(line);
    if (!blocks.empty() && blocks.back().goes_on_with(line)) {
      blocks.back().text.append(" ").append(line.substr(indent));
    } else {
      const bool prose = indent == 0 && !line.empty() && !Block::is_command(line);
      blocks.push_back({std::string(line), second_column(line), prose});
    }
  }
  return blocks;
}

void lay_out_row(Layout& layout, const Block& block, size_t width) {
  const std::string_view row = block.text;
  const size_t indent = indent_of(row), second = block.second;
  layout.pad_to(std::min(indent, width / 4));
  if (second == std::string_view::npos) return layout.fill(row.substr(indent), indent + kRowMargin);
  layout.fill(row.substr(indent, row.find("  ", indent) - indent), indent + kRowMargin);
  const size_t column = columns_of(row.substr(0, second));
  const bool beside = 2 * column <= width && layout.column() < column && column + longest_word(row.substr(second)) <= width;
  if (!beside) layout.end_line();
  const size_t at = beside ? column : indent + 2 * kRowMargin;
  layout.pad_to(at);
  layout.fill(row.substr(second), at);
}

HelpPart part_of(const Block& block) {
  using Kind = HelpPart::Kind;
  const std::string_view text = block.text;
  const size_t indent = indent_of(text);
  if (block.prose) return {Kind::prose, block.text, ""};
  if (block.second != std::string_view::npos)
    return {Kind::row, std::string(text.substr(indent, text.find("  ", indent) - indent)),
            std::string(text.substr(block.second))};
  const Kind kind = !Block::is_command(text) ? Kind::prose : indent == 0 ? Kind::usage : Kind::example;
  return {kind, std::string(text.substr(indent)), ""};
}

}  // namespace

std::vector<HelpPart> help_parts(std::string_view page) {
  std::vector<HelpPart> parts;
  for (const Block& block : blocks_of(page))
    if (!block.text.empty()) parts.push_back(part_of(block));
  return parts;
}

std::string laid_out(std::string_view text, int width) {
  Layout layout(static_cast<size_t>(std::max(width, 20)));
  for (const Block& block : blocks_of(text)) {
    if (block.prose) {
      layout.fill(block.text, 0);
    } else if (!block.text.empty()) {
      lay_out_row(layout, block, static_cast<size_t>(std::max(width, 20)));
    }
    layout.end_line();
  }
  return layout.take();
}

}  // namespace snug::cli
