#include "data/parquet/schema.h"

#include <algorithm>

#include "base/quote.h"
#include "data/parquet/damaged.h"

namespace snug::parquet {
namespace {

constexpr int kDeepest = 40;

class Builder {
 public:
  explicit Builder(const std::vector<SchemaElement>& elements) : elements_(elements) {}

  std::vector<Node> build() {
    std::vector<Node> columns = fields(elements_.front(), {0, 0, 0});
    if (next_ != elements_.size()) damaged("its schema has columns that belong to nothing");
    if (leaves_ == 0) damaged("its schema has no columns");
    return columns;
  }

 private:
  struct Level {
    int definition, repetition, depth;
  };

  const SchemaElement& take() {
    if (next_ >= elements_.size()) damaged("its schema ends too early");
    return elements_[next_++];
  }
  const SchemaElement& ahead() const {
    if (next_ >= elements_.size()) damaged("its schema ends too early");
    return elements_[next_];
  }

  std::vector<Node> fields(const SchemaElement& group, Level level) {
    if (level.depth > kDeepest) unsupported("a schema nested deeper than " + std::to_string(kDeepest) + " levels");
    std::vector<Node> nodes;
    for (int64_t i = 0; i < group.children; ++i) {
      nodes.push_back(node(level));
      for (size_t k = 0; k + 1 < nodes.size(); ++k)
        if (nodes[k].name == nodes.back().name) damaged("its schema names " + quote(nodes[k].name) + " twice");
    }
    return nodes;
  }

  // The element ahead, below a group whose fields stand at `level`.
  Node node(Level level) {
    const SchemaElement& element = take();
    if (element.repetition == Repetition::optional) ++level.definition;
    if (element.repetition != Repetition::repeated) return body(element, level);
    // A repeated field outside a list is a list that is never null.
    Node list = container(Node::Kind::list, element, level);
    list.children.push_back(body(element, inner(level)));
    return close(std::move(list));
  }

  static Level inner(Level level) { return {level.definition + 1, level.repetition + 1, level.depth + 1}; }

  Node container(Node::Kind kind, const SchemaElement& element, Level level) const {
    Node node;
    node.kind = kind;
    node.name = element.name;
    node.defined_at = level.definition;
    node.filled_at = level.definition + 1;
    node.repeated_at = level.repetition + 1;
    node.first_leaf = leaves_;
    return node;
  }

  Node close(Node node) const {
    node.leaves = leaves_ - node.first_leaf;
    if (node.leaves == 0) unsupported("a group without columns (" + quote(node.name) + ")");
    return node;
  }

  // What `element` holds, where its own repetition is accounted for.
  Node body(const SchemaElement& element, Level level) {
    if (level.depth > kDeepest) unsupported("a schema nested deeper than " + std::to_string(kDeepest) + " levels");
    if (element.type) return leaf(element, level);
    const bool one_repeated = element.children == 1 && ahead().repetition == Repetition::repeated;
    if (element.meaning == Meaning::list && one_repeated) return list(element, level);
    if (element.meaning == Meaning::map && one_repeated && ahead().children == 2) return map(element, level);
    Node object = container(Node::Kind::object, element, level);
    object.children = fields(element, {level.definition, level.repetition, level.depth + 1});
    return close(std::move(object));
  }

  Node list(const SchemaElement& element, Level level) {
    Node list = container(Node::Kind::list, element, level);
    const SchemaElement& repeated = take();
    const bool is_element = repeated.type || repeated.children != 1 || ahead().repetition == Repetition::repeated ||
                            repeated.name == "array" || repeated.name == element.name + "_tuple";
    list.children.push_back(is_element ? body(repeated, inner(level)) : node(inner(level)));
    return close(std::move(list));
  }

  Node map(const SchemaElement& element, Level level) {
    Node map = container(Node::Kind::map, element, level);
    map.children = fields(take(), inner(level));
    return close(std::move(map));
  }

  Node leaf(const SchemaElement& element, Level level) {
    Node leaf = container(Node::Kind::leaf, element, level);
    leaf.leaves = 1;
    leaf.type = *element.type;
    leaf.meaning = element.meaning;
    leaf.type_length = element.type_length;
    leaf.repetition_levels = level.repetition;
    if (leaf.type == Physical::int96) leaf.unsupported = "INT96";
    if (leaf.type == Physical::fixed_len_byte_array && leaf.type_length == 0) damaged("a column's width is 0");
    if (leaf.meaning == Meaning::other) leaf.unsupported = element.meaning_name;
    ++leaves_;
    return leaf;
  }

  const std::vector<SchemaElement>& elements_;
  size_t next_ = 1;
  int64_t leaves_ = 0;
};

}  // namespace

std::vector<Node> read_schema(const FileMetadata& metadata) { return Builder(metadata.schema).build(); }

}  // namespace snug::parquet
