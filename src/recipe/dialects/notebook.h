#pragma once
// Jupyter notebooks (nbformat 4): the Python in their code cells, and the commands that they have a shell run.

#include <string>
#include <string_view>
#include <vector>

namespace snug::dialects {

struct NotebookCode {
  std::string code;
  std::string shell;  // what "!…" and "%%bash" run, and the files that "%%writefile" writes, one after the other
  std::vector<std::string> notes;  // cells that are left out, and why
};

// Cell after cell, without IPython's own lines ("%…", "!…"), without cells in other languages and those that Python would
// not read: Jupyter runs the others all the same. Throws Error for what is no notebook.
NotebookCode code_of_notebook(std::string_view text, const std::string& where);

}  // namespace snug::dialects
