#pragma once
// The tree of a Parquet schema as rows see it: objects, lists, maps and leaves, with the levels at which each is there.
// The forms in which writers spell lists are known here alone. Source: parquet-format/LogicalTypes.md (backward
// compatibility rules); levels after S. Melnik et al., "Dremel: interactive analysis of web-scale datasets", 2010.

#include <cstdint>
#include <string>
#include <vector>

#include "data/parquet/metadata.h"

namespace snug::parquet {

struct Node {
  enum class Kind : uint8_t { leaf, object, list, map };
  Kind kind = Kind::leaf;
  std::string name;
  int defined_at = 0;                  // definition level from which on it is not null
  int filled_at = 0;                   // of a list or map: from which on it has an element
  int repeated_at = 0;                 // of a list or map: the repetition level of its second element
  std::vector<Node> children;          // fields; the element; key and value
  int64_t first_leaf = 0, leaves = 0;  // the leaves below

  // Of a leaf.
  Physical type = Physical::boolean;
  Meaning meaning = Meaning::plain;
  int64_t type_length = 0;
  int repetition_levels = 0;  // the highest
  std::string unsupported;    // why its values cannot be read; empty if they can
};

// The top-level columns. Throws Error for schemas that contradict themselves or are nested too deep.
std::vector<Node> read_schema(const FileMetadata& metadata);

}  // namespace snug::parquet
