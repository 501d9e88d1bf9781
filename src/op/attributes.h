#pragma once
// What an op is told beside its operands, and how it is cut.

#include <cstdint>

#include "base/activation.h"
#include "base/arithmetic.h"
#include "base/dtype.h"
#include "base/rank_group.h"

namespace snug {

// Launch arguments that never change while training. Each kind uses the few it names.
struct Attributes {
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  bool inverse = false;
  double scale = 1.0;
  double weight_offset = 0.0;  // norms: added to the weight
  double softcap = 0.0;        // attention, head_loss; 0: none
  int64_t first_column = 0;    // rope: the first number of a head that rotates
  int64_t window = 0;          // attention in the Program's local layers, tokens; 0: none
  Activation activation = Activation::silu;
  int64_t untrained_row = -1;  // embedding: this row's gradient is left out; -1: none's
  double epsilon = 0.0;
  double beta1 = 0.0;
  double beta2 = 0.0;
  double weight_decay = 0.0;
  double momentum = 0.0;
  uint64_t noise_seed = 0, noise_stream = 0;  // of what is rounded or left out at random
  double max_norm = 0.0;
  int64_t scale_window = 0;          // update_scale: good steps before the scale grows
  bool normalize_weights = false;    // of a token's chosen experts, so that they sum to 1
  bool sigmoid_scores = false;       // route: of experts, in place of a softmax
  double probability = 0.0;          // dropout: of an element to be left out
  bool complement = false;           // dropout: what it takes away instead of what it leaves
  int64_t needed_rows = 0;           // of routed rows: tokens times choices; the others are padding
  int64_t block_size = 0;            // of a quantized b: elements to a scale
  DType values = DType::f32;         // that its numbers are rounded to
  int64_t ranks = 1;                 // collectives: that take part; route: that split experts; attention: whose keys go …
  RankGroup group = RankGroup::all;  // … round this group
  int64_t ring_step = -1;            // attention: how far the keys have come, in a loop in its first chunk; -1: all of them
};

// How an op is split over threads and in blocks of its result; the same cut gives the same bits.
struct OpCut {
  int32_t threads = 1;
  int64_t rows = 0;                          // of the result (or of the chunk) handled at a time; 0: all
  int64_t cols = 0;                          // of the result handled at a time (panels); 0: all
  int64_t depth = 0;                         // of the summed dimension handled at a time; 0: all
  Arithmetic arithmetic = Arithmetic::fp32;  // of products
  bool turned = false;                       // a product is cut and computed as its transpose
  bool apart = false;                        // experts with few rows get a thread each
  int64_t span = 0;                          // tiles of one expert that are multiplied together, at most
};

}  // namespace snug
