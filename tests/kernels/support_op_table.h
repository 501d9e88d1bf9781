#pragma once
// The op table: for every kind of op that a backend runs, some of each of its shapes and dtypes, as views with memory behind
// them. What drives a test of any backend.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/scalars.h"
#include "op/view.h"

namespace snug::tests {

enum class Fill : uint8_t {
  normal,     // normal numbers
  positive,   // their magnitudes, and a little
  zeros,      // what is summed into, or must not be read before it is written
  ids,        // whole numbers from 0 to below `bound`
  ascending,  // 0, 1, 2 …
  routing     // what `route` would have written for this op's sizes
};

struct TableOperand {
  Slot slot;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  Fill fill = Fill::normal;
  bool result = false;  // compared afterwards
  int64_t bound = 0;
};

struct TableCase {
  OpKind kind;
  std::string name;  // "matmul 5 x 7 x 9 bf16"
  std::vector<TableOperand> operands;
  Attributes attributes = {};
  bool is_local = false;
  int64_t place = 0;                       // of the rank, in the op's group
  Arithmetic products = Arithmetic::fp32;  // the most that the machine has
};

// Every case of every kind.
std::vector<TableCase> op_table();

// The operands' bytes of one run: the same numbers whenever it is made.
class TableMemory {
 public:
  explicit TableMemory(const TableCase& of);
  // The op with addresses; `workspace` bytes are added where there are any, and its cut is `cut`.
  OpView view(const OpCut& cut, int64_t workspace);
  // What an operand holds, as numbers.
  std::vector<double> numbers(size_t operand) const;

 private:
  const TableCase& of_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<std::byte> workspace_;
};

}  // namespace snug::tests
