#pragma once
// Jupyter notebooks (nbformat 4): the Python in their code cells.

#include <string>
#include <string_view>

namespace snug::dialects {

// Cell after cell, without IPython's own lines ("%…", "!…") and without cells in other languages. Throws Error for what is
// no notebook.
std::string code_of_notebook(std::string_view text, const std::string& where);

}  // namespace snug::dialects
