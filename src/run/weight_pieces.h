#pragma once
// The tensors of a Program as files hold them: by layer and expert, each with its name.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/safetensors_header.h"
#include "run/executor.h"
#include "run/weight_files.h"

namespace snug {

inline constexpr std::string_view kLoraAEnd = ".lora_A.weight";
inline constexpr int64_t kAll = -1;  // of a weight's experts, or of a weight that has none

// One layer's instance of a tensor, or one expert's part of it, which another rank may have.
struct WeightPart {
  TensorId tensor;
  int64_t layer, expert;
  const Slice* slice = nullptr;  // that ranks have of it; null: all of it
};

// A part, and what files call it.
struct WeightPiece {
  std::string name;
  WeightPart part;
  bool repeats = false;              // another stage's: it is that one which writes it
  const char* former_end = nullptr;  // what its name ends with in older files
};

// Its name in older files; "": it has none.
std::string former_name(const WeightPiece& piece);

Tensor tensor_of(const Executor& executor, const WeightPart& part);
// Whether this rank has it, or a slice of it.
bool is_here(const Executor& executor, const WeightPart& part);
// Of what is here: where it lies; empty in the far home, which goes through Transfer.
std::span<std::byte> bytes_of(const Executor& executor, const WeightPart& part);
// Bytes of a layer's tensor before this part of it.
int64_t begin_of(const Executor& executor, const WeightPart& part);

// The shape that files give it.
std::vector<int64_t> file_shape(const Executor& executor, const WeightPart& part);
// What this rank has of a file's tensor. Throws Error if it has another shape than this.
TensorEntry own_cut(const Executor& executor, const WeightPart& part, const TensorEntry& entry, const std::string& where);

int64_t end_layer(const Executor& executor, const Weight& weight);
// visit(layer, expert) for every tensor that files hold of this weight.
template <class Visit>
void for_each_part(const Executor& executor, const Weight& weight, const Visit& visit) {
  for (int64_t layer = weight.parameter.first_layer; layer < end_layer(executor, weight); ++layer) {
    if (weight.parameter.experts == 0) visit(layer, kAll);
    for (int64_t expert = 0; expert < weight.parameter.experts; ++expert) visit(layer, expert);
  }
}

// Elements of f32, bf16 and f16.
float element_as_float(const std::byte* bytes, DType dtype, size_t index);
void store_float(std::byte* bytes, DType dtype, size_t index, float value);

const Slice* slice_of(const Weight& weight);  // null: it has all

// Of what is trained, and of its optimizer states.
std::vector<WeightPiece> trained_pieces(const Executor& executor, Naming naming);
std::vector<WeightPiece> state_pieces(const Executor& executor);

bool is_adapter(const Executor& executor);

}  // namespace snug
