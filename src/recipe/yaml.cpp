#include "recipe/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>

#include "base/error.h"
#include "recipe/dialects/document.h"
#include "recipe/keys.h"
#include "recipe/utf8.h"

namespace snug {

namespace {

constexpr size_t kLargestRecipeBytes = size_t{1} << 20;

std::string place(const std::string& where, const YAML::Mark& mark) {
  return mark.is_null() ? where : fmt::format("{}:{}", where, mark.line + 1);
}

// Walks over the events of a YAML text before anything is built from it: one document, no anchors, no deep nesting.
class StructureCheck : public YAML::EventHandler {
 public:
  explicit StructureCheck(const std::string& where) : where_(where) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { refuse_anchor(mark, anchor); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override { refuse_anchor(mark, anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, const std::string&) override {
    refuse_anchor(mark, anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    descend(mark, anchor);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    descend(mark, anchor);
  }
  void OnMapEnd() override { --depth_; }

 private:
  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != 0) throw Error("YAML anchors are not supported", place(where_, mark), "write the value itself");
  }
  void descend(const YAML::Mark& mark, YAML::anchor_t anchor) {
    constexpr int kDeepest = 16;
    refuse_anchor(mark, anchor);
    if (++depth_ > kDeepest) throw Error("the YAML is nested too deeply", place(where_, mark), "a recipe is flat");
  }

  const std::string& where_;
  int depth_ = 0;
};

// YAML::LoadAll is not used: yaml-cpp 0.7 never comes back from a stray "]" between documents.
void check_structure(std::string_view text, const std::string& where) {
  std::istringstream stream{std::string(text)};
  YAML::Parser parser(stream);
  StructureCheck check(where);
  if (parser.HandleNextDocument(check) && parser.HandleNextDocument(check)) {
    throw Error("the file holds several YAML documents", where, "keep one");
  }
}

// "name=value" of each pair.
std::vector<std::string> pairs_of(const YAML::Node& map, const std::string& key, const std::string& where) {
  std::vector<std::string> items;
  for (const auto& pair : map) {
    if (!pair.first.IsScalar() || !pair.second.IsScalar())
      throw Error(fmt::format("{}: a mapping may hold plain values only", key), where);
    items.push_back(pair.first.Scalar() + "=" + pair.second.Scalar());
  }
  return items;
}

// The scalars of a value; none for null and for empty lists and maps. Throws for what a key can't hold.
std::vector<std::string> scalars_of(const YAML::Node& node, const Key* known, const std::string& key,
                                    const std::string& where) {
  const bool ours = known != nullptr;
  switch (node.Type()) {
    case YAML::NodeType::Scalar: return {node.Scalar()};
    case YAML::NodeType::Sequence: {
      std::vector<std::string> items;
      for (const YAML::Node& item : node) {
        if (item.IsScalar()) {
          items.push_back(item.Scalar());
        } else if (ours) {
          throw Error(fmt::format("{}: a list may hold plain values only", key), where);
        } else {
          items.emplace_back("…");
        }
      }
      return items;
    }
    case YAML::NodeType::Map:
      if (node.size() == 0) return {};
      if (ours && known->type == KeyType::map) return pairs_of(node, key, where);
      if (ours) throw Error(fmt::format("{} must be a value or a list, not a mapping", key), where);
      return {"…"};
    case YAML::NodeType::Null:
    case YAML::NodeType::Undefined: break;
  }
  return {};
}

void read_pair(RecipeFile& file, const std::string& name, const YAML::Node& value, const std::string& where) {
  const Key* key = find_key(name);
  const std::vector<std::string> values = scalars_of(value, key, name, where);
  if (key && value.IsNull()) {
    // Null leaves a default in place, but where a word is expected it is more likely an oversight.
    if (key->type == KeyType::choice || key->type == KeyType::boolean) {
      throw Error(fmt::format("{} has no value", name), where, fmt::format("write {}", key->values));
    }
    return;
  }
  const bool scalar = value.IsScalar();
  const Applied applied = scalar ? apply(file.recipe, name, values[0], where) : apply_list(file.recipe, name, values, where);
  if (applied == Applied::passed_over) {
    file.passed_over.push_back(name);
  } else {
    file.keys_set.emplace_back(key->name);
  }
}

RecipeFile read_mapping(const YAML::Node& root, const std::string& where) {
  RecipeFile file;
  if (root.IsNull()) return file;
  if (!root.IsMap())
    throw Error("a recipe is a mapping of keys to values", where, "write lines such as 'learning_rate: 2e-4'");
  std::map<std::string, std::string> seen;  // key → as written
  for (const auto& pair : root) {
    const std::string at = place(where, pair.first.Mark());
    if (!pair.first.IsScalar()) throw Error("a key must be plain text", at);
    const std::string& name = pair.first.Scalar();
    const Key* key = find_key(name);
    const auto [earlier, fresh] = seen.emplace(key ? std::string(key->name) : name, name);
    if (!fresh) {
      throw Error(earlier->second == name ? fmt::format("'{}' is given twice", name)
                                          : fmt::format("'{}' and '{}' are the same key", earlier->second, name),
                  at);
    }
    read_pair(file, name, pair.second, at);
  }
  return file;
}

}  // namespace

RecipeFile parse_recipe_yaml(std::string_view text, const std::string& where) {
  if (text.size() > kLargestRecipeBytes) throw Error("the file is larger than 1 MiB", where, "is this a recipe?");
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  check_plain_text(text, where);
  try {
    check_structure(text, where);
    return read_mapping(YAML::Load(std::string(text)), where);
  } catch (const YAML::Exception& error) {
    throw Error(fmt::format("not valid YAML: {}", error.msg), place(where, error.mark));
  }
}

std::string read_recipe_text(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) throw Error("there is no such file", path.string());
  if (!std::filesystem::is_regular_file(status)) throw Error("this is not a file", path.string());
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw Error("the file cannot be opened", path.string(), "check its permissions");
  const size_t most = path.extension() == ".ipynb" ? dialects::kLargestNotebookBytes : kLargestRecipeBytes;
  std::string text(std::min<size_t>(most, std::filesystem::file_size(path)) + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) throw Error("the file cannot be read", path.string());
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

RecipeFile read_recipe_yaml(const std::filesystem::path& path) {
  return parse_recipe_yaml(read_recipe_text(path), path.string());
}

std::string write_recipe_yaml(const Recipe& recipe) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  for (const Key& key : recipe_keys()) {
    if (!key.get) continue;
    const std::string value = key.get(recipe);
    out << YAML::Key << std::string(key.name) << YAML::Value;
    const bool quoted = key.type == KeyType::text || key.type == KeyType::list || key.type == KeyType::map;
    if (quoted) out << YAML::DoubleQuoted;
    out << value;
  }
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace snug
