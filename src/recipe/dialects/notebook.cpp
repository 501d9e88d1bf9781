#include "recipe/dialects/notebook.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <optional>

#include "base/error.h"
#include "recipe/dialects/python_tokens.h"

namespace snug::dialects {

namespace {

namespace dom = simdjson::dom;

// A cell's source is a string or a list of lines.
std::string source_of(dom::object cell) {
  dom::element source;
  if (cell["source"].get(source) != simdjson::SUCCESS) return {};
  if (source.is_string()) return std::string(std::string_view(source));
  std::string text;
  if (dom::array lines; source.get(lines) == simdjson::SUCCESS)
    for (const dom::element line : lines)
      if (line.is_string()) text += std::string_view(line);
  return text;
}

bool is_ipythons(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t");
  return first != std::string_view::npos && (line[first] == '%' || line[first] == '!' || line[first] == '?');
}

// "%%bash": the rest of the cell is not Python.
bool is_another_language(std::string_view cell) {
  for (const char* magic :
       {"%%bash", "%%sh", "%%html", "%%javascript", "%%js", "%%markdown", "%%writefile", "%%script", "%%latex"})
    if (cell.starts_with(magic)) return true;
  return false;
}

// A line of the cell, with those that a backslash joins to it where IPython's own begins there; `cell` goes on behind it.
std::string_view next_line(std::string_view& cell) {
  size_t end = std::min(cell.find('\n'), cell.size() - 1) + 1;
  const auto goes_on = [&] { return end >= 2 && cell[end - 1] == '\n' && cell[end - 2] == '\\' && end < cell.size(); };
  while (is_ipythons(cell.substr(0, end)) && goes_on()) end = std::min(cell.find('\n', end), cell.size() - 1) + 1;
  const std::string_view line = cell.substr(0, end);
  cell.remove_prefix(end);
  return line;
}

// "%%bash" with what follows, "%%writefile run.yaml" as the shell would write it, "!" lines.
std::string shell_of(std::string_view cell) {
  const std::string_view rest = cell.substr(std::min(cell.find('\n'), cell.size() - 1) + 1);
  for (const char* magic : {"%%bash", "%%sh"})
    if (cell.starts_with(magic)) return std::string(rest) + "\n";
  constexpr std::string_view kWrites = "%%writefile ";
  if (cell.starts_with(kWrites)) {
    const std::string_view head = cell.substr(kWrites.size(), cell.size() - kWrites.size() - rest.size());
    const std::string_view name = head.substr(0, head.find_last_not_of(" \t\r\n") + 1);
    return fmt::format("cat > {} << 'END_OF_CELL'\n{}\nEND_OF_CELL\n", name, rest);
  }
  std::string commands;
  while (!cell.empty()) {
    const std::string_view line = next_line(cell);
    const size_t first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos || line[first] != '!') continue;
    commands += line.substr(first + 1);
    if (!commands.ends_with('\n')) commands += '\n';
  }
  return commands;
}

std::string python_of(std::string_view cell) {
  std::string code;
  while (!cell.empty()) {
    const std::string_view line = next_line(cell);
    if (!is_ipythons(line)) code += line;
  }
  if (!code.ends_with('\n')) code += '\n';
  return code;
}

// Nothing if Python can read it.
std::optional<std::string> what_is_wrong(const std::string& code, const std::string& where) {
  try {
    python_tokens(code, where);
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

NotebookCode code_of_notebook(std::string_view text, const std::string& where) {
  const auto refuse = [&](const std::string& what) {
    throw Error("this is no notebook: " + what, where, "give an .ipynb that Jupyter saved");
  };
  dom::parser parser;
  dom::element document;
  if (const auto error = parser.parse(text.data(), text.size()).get(document); error != simdjson::SUCCESS)
    refuse(simdjson::error_message(error));
  dom::array cells;
  if (document["cells"].get(cells) != simdjson::SUCCESS) refuse("it has no list of cells");
  NotebookCode result;
  int number = 0;
  for (const dom::element element : cells) {
    ++number;
    dom::object cell;
    std::string_view type;
    if (element.get(cell) != simdjson::SUCCESS || cell["cell_type"].get(type) != simdjson::SUCCESS || type != "code")
      continue;
    const std::string source = source_of(cell);
    if (!source.empty()) result.shell += shell_of(source);
    if (is_another_language(source)) continue;
    const std::string code = python_of(source);
    if (const auto wrong = what_is_wrong(code, fmt::format("cell {}", number))) {
      result.notes.push_back(fmt::format("a cell is left out: {}", *wrong));
      continue;
    }
    result.code += code;
  }
  return result;
}

}  // namespace snug::dialects
