#include "data/parquet/parquet_reader.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "data/naming.h"
#include "data/parquet/damaged.h"

namespace snug::parquet {
namespace {

constexpr size_t kNodeBytes = 48;  // what an element costs beside its text

// Leaves below `node` with their dotted names.
void collect_leaves(const Node& node, const std::string& name, std::vector<std::pair<const Node*, std::string>>& leaves) {
  if (node.kind == Node::Kind::leaf) leaves.emplace_back(&node, name);
  for (const Node& child : node.children) collect_leaves(child, name + "." + child.name, leaves);
}

}  // namespace

ParquetReader::ParquetReader(const std::filesystem::path& file, int64_t most_page_bytes)
    : where_(file.string()), file_(file, "give a Parquet file that can be read"), most_page_bytes_(most_page_bytes) {
  naming(where_, [&] {
    metadata_ = read_metadata(file_);
    schema_ = read_schema(metadata_);
  });
}

std::vector<std::string> ParquetReader::columns() const {
  std::vector<std::string> names;
  for (const Node& node : schema_) names.push_back(node.name);
  return names;
}

void ParquetReader::select(const std::vector<std::string>& names) {
  wanted_.clear();
  for (const std::string& name : names) {
    const auto found = std::ranges::find(schema_, name, &Node::name);
    if (found == schema_.end())
      throw Error("column " + quote(name) + " is missing", where_, "every file needs the columns of the first one");
    wanted_.push_back(&*found);
  }
}

// Opens the readers of the next row group that has rows; false if there is none.
bool ParquetReader::open_group() {
  while (next_group_ < metadata_.row_groups.size() && metadata_.row_groups[next_group_].rows == 0) ++next_group_;
  if (next_group_ == metadata_.row_groups.size()) return false;
  const RowGroup& group = metadata_.row_groups[next_group_++];
  const int64_t leaves = schema_.back().first_leaf + schema_.back().leaves;
  if (static_cast<int64_t>(group.columns.size()) != leaves) damaged("a row group has not the columns of the schema");
  readers_.clear();
  readers_.resize(static_cast<size_t>(leaves));
  for (const Node* column : wanted_) {
    std::vector<std::pair<const Node*, std::string>> below;
    collect_leaves(*column, column->name, below);
    for (auto& [node, name] : below) {
      const auto i = static_cast<size_t>(node->first_leaf);
      readers_[i] = std::make_unique<ColumnReader>(file_, std::move(name), group.columns[i], *node, most_page_bytes_);
    }
  }
  rows_left_ = group.rows;
  return true;
}

bool ParquetReader::next(JsonValue& row, std::string& problem) {
  return naming(where_, [&] {
    if (rows_left_ == 0 && !open_group()) return false;
    ++row_number_;
    --rows_left_;
    row_bytes_ = 0;
    problem_.clear();
    JsonValue::Object members;
    for (const Node* column : wanted_) {
      require_agreement(*column, -1, 0);
      members.push_back({column->name, assemble(*column)});
    }
    if (rows_left_ == 0) {
      for (const auto& reader : readers_)
        if (reader && !reader->at_end()) damaged("a column has more values than the row group has rows");
    }
    row = JsonValue(std::move(members));
    problem = problem_;
    return true;
  });
}

void ParquetReader::spend(size_t bytes) {
  row_bytes_ += bytes + kNodeBytes;
  if (row_bytes_ > static_cast<size_t>(kMostRowBytes)) problem_ = "the row is larger than 64 MiB";
}

// All leaves below `node` must agree on what `node` is: at this repetition level, and (unless `definition` is -1) all
// below the definition level or none.
void ParquetReader::require_agreement(const Node& node, int definition, int repetition) const {
  const auto first = static_cast<size_t>(node.first_leaf);
  const bool defined = definition < 0 || readers_[first]->definition() >= definition;
  for (size_t i = first; i < first + static_cast<size_t>(node.leaves); ++i) {
    const ColumnReader& reader = *readers_[i];
    if (reader.at_end()) damaged("a column has fewer values than the others");
    if (repetition >= 0 && reader.repetition() != repetition) damaged("its columns disagree on where a list begins");
    if (definition >= 0 && (reader.definition() >= definition) != defined) damaged("its columns disagree on what is null");
  }
}

// Passes over the one entry that each leaf below an absent node has.
void ParquetReader::pass(const Node& node) {
  for (int64_t i = node.first_leaf; i < node.first_leaf + node.leaves; ++i) readers_[static_cast<size_t>(i)]->advance();
}

JsonValue ParquetReader::assemble(const Node& node) {
  if (node.kind == Node::Kind::leaf) return leaf(node);
  require_agreement(node, node.defined_at, -1);
  if (readers_[static_cast<size_t>(node.first_leaf)]->definition() < node.defined_at) {
    pass(node);
    return {};
  }
  return node.kind == Node::Kind::object ? object(node) : list(node);
}

JsonValue ParquetReader::leaf(const Node& node) {
  ColumnReader& reader = reader_of(node);
  if (reader.definition() < node.defined_at) {
    reader.advance();
    return {};
  }
  const Scalar scalar = reader.value();
  JsonValue value;
  switch (node.type) {
    case Physical::boolean: value = JsonValue(scalar.integer != 0); break;
    case Physical::int32:
      value = JsonValue(node.meaning == Meaning::unsigned_integer ? scalar.integer & 0xFFFFFFFF : scalar.integer);
      break;
    case Physical::int64:
      if (node.meaning == Meaning::unsigned_integer && scalar.integer < 0) {
        value = JsonValue(static_cast<double>(static_cast<uint64_t>(scalar.integer)));  // as JSON's large numbers
      } else {
        value = JsonValue(scalar.integer);
      }
      break;
    case Physical::float32:
    case Physical::float64: value = JsonValue(scalar.real); break;
    default:
      spend(scalar.text.size());
      if (problem_.empty() && !is_utf8(scalar.text)) problem_ = "column " + quote(node.name) + " is not UTF-8";
      if (problem_.empty()) value = JsonValue(scalar.text);
  }
  reader.advance();
  return value;
}

JsonValue ParquetReader::object(const Node& node) {
  JsonValue::Object members;
  members.reserve(node.children.size());
  for (const Node& child : node.children) {
    spend(child.name.size());
    members.push_back({child.name, assemble(child)});
  }
  return JsonValue(std::move(members));
}

// A list of its elements, or an object of a map whose keys are strings.
JsonValue ParquetReader::list(const Node& node) {
  const bool is_map = node.kind == Node::Kind::map;
  JsonValue::List elements;
  JsonValue::Object members;
  require_agreement(node, node.filled_at, -1);
  const ColumnReader& first = *readers_[static_cast<size_t>(node.first_leaf)];
  if (first.definition() < node.filled_at) {
    pass(node);
  } else {
    for (bool more = true; more;) {
      spend(0);
      JsonValue element = assemble(node.children.front());
      JsonValue value = is_map ? assemble(node.children.back()) : JsonValue();
      if (problem_.empty() && is_map) {
        if (element.string() == nullptr) unsupported("map " + quote(node.name) + ", whose keys are not strings,");
        members.push_back({*element.string(), std::move(value)});
      } else if (problem_.empty()) {
        elements.push_back(std::move(element));
      }
      more = !first.at_end() && first.repetition() == node.repeated_at;
      if (more) require_agreement(node, node.filled_at, node.repeated_at);
      if (more && first.definition() < node.filled_at) damaged("a list goes on without an element");
    }
    for (int64_t i = node.first_leaf; i < node.first_leaf + node.leaves; ++i) {
      const ColumnReader& reader = *readers_[static_cast<size_t>(i)];
      if (reader.repetition() >= node.repeated_at) damaged("its columns disagree on where a list ends");
    }
  }
  return is_map ? JsonValue(std::move(members)) : JsonValue(std::move(elements));
}

}  // namespace snug::parquet
