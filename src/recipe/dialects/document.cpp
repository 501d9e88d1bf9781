#include "recipe/dialects/document.h"

#include <algorithm>

#include "base/error.h"
#include "recipe/dialects/handed_on.h"
#include "recipe/utf8.h"

namespace snug::dialects {

const std::string& Entry::text() const {
  static const std::string kNone;
  return values.size() == 1 ? values[0] : kNone;
}

std::string_view Entry::parent() const {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::string_view() : std::string_view(path).substr(0, dot);
}

const Entry* Document::find(std::string_view path) const {
  const auto found = std::find_if(entries.rbegin(), entries.rend(), [&](const Entry& e) { return e.path == path; });
  return found == entries.rend() ? nullptr : &*found;
}

Document read_document(std::string_view text, const std::string& where) {
  if (where.ends_with(".ipynb")) return read_notebook(text, where);
  if (text.size() > kLargestDocumentBytes) throw Error("the file is larger than 1 MiB", where, "is this a recipe?");
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  check_plain_text(text, where);
  const auto inheriting = [](Document document) {
    read_inherited(document);
    return document;
  };
  if (where.ends_with(".json")) return inheriting(read_json(text, where));
  if (where.ends_with(".py")) return read_python(text, where);
  for (const std::string_view end : {".sh", ".bash", ".sbatch", ".slurm"})
    if (where.ends_with(end)) return read_shell(text, where);
  if (text.starts_with("#!")) return read_shell(text, where);
  return inheriting(read_yaml(text, where));
}

}  // namespace snug::dialects
