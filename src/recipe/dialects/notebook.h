#pragma once
// Jupyter notebooks (nbformat 4): the Python in their code cells.

#include <string>
#include <string_view>
#include <vector>

namespace snug::dialects {

struct NotebookCode {
  std::string code;
  std::vector<std::string> notes;  // cells that are left out, and why
};

// Cell after cell, without IPython's own lines ("%…", "!…"), without cells in other languages and those that Python would
// not read: Jupyter runs the others all the same. Throws Error for what is no notebook.
NotebookCode code_of_notebook(std::string_view text, const std::string& where);

}  // namespace snug::dialects
