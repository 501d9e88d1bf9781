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

std::string python_of(std::string_view cell) {
  std::string code;
  while (!cell.empty()) {
    const size_t end = std::min(cell.find('\n'), cell.size() - 1) + 1;
    const std::string_view line = cell.substr(0, end);
    if (!is_ipythons(line)) code += line;
    cell.remove_prefix(end);
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
