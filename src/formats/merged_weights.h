#pragma once
// The weights of a checkpoint with adapters applied, read a few rows at a time: nothing is held but the thin matrices of the
// tensor that is being read. W + scale * B * A is computed in float32 and rounded once to the tensor's own dtype. A head
// that is tied to the embedding comes apart from it when an adapter changes one of the two, since the adapter was trained
// so.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/adapter_file.h"
#include "formats/checkpoint.h"

namespace snug {

struct MergedTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  const Checkpoint* file = nullptr;    // where its bytes before the changes are
  const TensorEntry* entry = nullptr;  // … and which they are
  struct Change {
    const AdapterFile* adapter;
    std::string module;
  };
  std::vector<Change> changes;  // in the order in which they are applied

  int64_t rows() const { return shape.empty() ? 1 : shape[0]; }
  int64_t row_elements() const;
  int64_t row_bytes() const;
  int64_t bytes() const;
};

class MergedWeights {
 public:
  // `tied`: config.json says that the head is the embedding. All three arguments must outlive this. Throws Error naming a
  // module that the checkpoint lacks, a shape that does not fit, or a weight that is stored quantized.
  MergedWeights(const Checkpoint& base, std::span<const AdapterFile> adapters, bool tied);

  // In the order of the checkpoint's files.
  std::span<const MergedTensor> tensors() const { return tensors_; }
  const MergedTensor* find(std::string_view name) const;

  int64_t changed() const { return changed_; }    // tensors with an adapter
  int64_t replaced() const { return replaced_; }  // tensors that an adapter holds whole
  bool untied() const { return untied_; }         // the head was tied and now stands alone

 private:
  size_t place_of(const std::string& name, const AdapterFile& adapter);
  void untie();
  void apply(const AdapterFile& adapter);

  const Checkpoint& base_;
  bool tied_;
  std::vector<MergedTensor> tensors_;
  int64_t changed_ = 0, replaced_ = 0;
  bool untied_ = false;
};

// Reads rows of one tensor.
class MergedReader {
 public:
  explicit MergedReader(const MergedTensor& tensor);

  // Fills `out` with whole rows from `row` on, in the tensor's dtype.
  void read(int64_t row, std::span<std::byte> out);

 private:
  void change(int64_t row, std::span<float> values) const;

  const MergedTensor& tensor_;
  std::vector<LowRankChange> changes_;
  std::vector<float> values_;
};

// Rows to read at once: about 4 MiB, at least one.
int64_t rows_at_once(const MergedTensor& tensor);

}  // namespace snug
