#pragma once
// A recipe file as it is written, before anybody asks what its keys mean: a flat list of entries, each with its value and
// the bytes where that stands, so that a change can be made in place. YAML, JSON, shell and Python scripts all become
// this. Knows nothing of dialects or of our keys. Whatever comes from outside is bounded: 1 MiB, 16 levels, no anchors.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace snug::dialects {

inline constexpr size_t kLargestDocumentBytes = size_t{1} << 20;
inline constexpr size_t kLargestNotebookBytes = size_t{64} << 20;  // with the pictures that it holds

enum class Syntax : uint8_t { yaml, json, shell, python };
enum class EntryKind : uint8_t { scalar, list, map };

struct Span {
  size_t begin = 0, end = 0;  // bytes of the text
};

struct Entry {
  std::string path;  // "model.lora_rank", "datasets.0.path"; a flag's name without dashes, with underscores
  EntryKind kind = EntryKind::scalar;
  std::vector<std::string> values;  // a scalar's one, a list's plain items; none for null, {} and []
  int64_t line = 0;                 // of the name, from 1
  Span name, value;                 // a flag's name includes its dashes; a value its quotes
  bool in_place = false;            // `value` may be replaced: it stands in one piece on one line
  bool in_flow = false;             // the entry stands in {…}

  const std::string& text() const;  // the one value, or ""
  std::string_view leaf() const { return std::string_view(path).substr(path.rfind('.') + 1); }
  std::string_view parent() const;  // "model" of "model.lora_rank"; "" at the top
};

struct Document {
  Syntax syntax = Syntax::yaml;
  std::string text, where;
  std::vector<Entry> entries;  // in the file's order; a mapping comes before what it holds
  std::vector<std::string>
      command;  // shell: the command's words before its flags, "swift", "sft"; Python: "trl", "dpo", "DPOConfig"
  std::vector<int64_t> blank_ends;  // shell: lines where blanks stand behind the last backslash
  std::vector<std::string> firsts;  // Python: keys whose value is the first of several that a loop goes over
  std::vector<std::string> beside;  // files that a script imports, loads or hands on, which say some of its values
  std::string started;              // shell: the Python script that the command starts, whose calls are read
  bool own_options = false;         // … whose options are its author's own: none can be added
  std::vector<std::string> notes;   // what else a reader should know
  std::vector<std::string> unread;  // words whose value only a shell knows, "${ARGS[@]}", keys whose value only Python does

  const Entry* find(std::string_view path) const;  // the last one of that path, as in a shell; null if there is none
  bool has(std::string_view path) const { return find(path) != nullptr; }
  // Whether calls of a Python script say what is trained.
  bool by_python() const { return syntax == Syntax::python || !started.empty(); }
};

// Each throws Error with `where` and the line for what is not of that form. `shell` finds the command that trains; an error
// names the commands it knows.
Document read_yaml(std::string_view text, const std::string& where);
Document read_json(std::string_view text, const std::string& where);
Document read_shell(std::string_view text, const std::string& where);
Document read_python(std::string_view text, const std::string& where);
Document read_notebook(std::string_view text, const std::string& where);

// By the name's ending (.json, .sh, .bash, .sbatch, .slurm, .py, .ipynb) or, for others, by the text's beginning.
Document read_document(std::string_view text, const std::string& where);

}  // namespace snug::dialects
