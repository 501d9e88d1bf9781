#pragma once
// Program: a fine-tuning run as a tree of regions, in order of time. Repeated parts (layer x L, micro-batch x k) are written
// once and stay folded. It knows shapes and bytes, never addresses: those are the Layout's.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/rank_group.h"
#include "model/parameters.h"
#include "program/op.h"
#include "program/tensor.h"

namespace snug {

enum class Stage : uint8_t { load, forward, backward, optimizer, evaluate, generate, save };
constexpr int kStageCount = 7;
const char* name_of(Stage stage);

// What a region repeats over. `micro_batch` repeats in time with the same storages; `layer` selects instances and layer
// views; `chunk`, which may stand inside a layer loop, selects chunks of flat buffers.
enum class Axis : uint8_t { none, layer, micro_batch, chunk };

// A value handed from layer to layer: the same storage seen from before the loop, at the top and bottom of the body, and
// after.
struct Carry {
  TensorId before = kNone, in = kNone, out = kNone, after = kNone;
};

struct Item;

// Whether a region begins the next micro-batch, or brings back the first that is on its way.
enum class Turn : uint8_t { none, ahead, back };

// What a region is to whoever looks for it; its name is for people. `other`: found by nobody.
enum class Section : uint8_t {
  other,
  load,
  keep,  // of what lies far, what stays in memory all the same: within loading
  step,
  micro_batch,
  warm_up,    // of stages of a pipeline: micro-batches that are begun before the first one comes back …
  steady,     // … then one goes back for each that is begun …
  cool_down,  // … and in the end those come back that are on their way
  batch,
  forward,
  backward,
  blocks,           // a loop over layers of the forward, by index from the first layer on …
  blocks_backward,  // … and the one that goes back through the same layers, under the same index
  clear,            // of gradients, before the window
  norm,             // of gradients, and the factor that clips them
  optimizer,
  scale,  // of the loss
  evaluate,
  generation_step,  // one for each of Generation::steps
  head,             // of generation
  save,
};
const char* name_of(Section section);

struct Region {
  std::string name;
  Section section = Section::other;
  int32_t index = 0;  // where a Program has several of the section
  Stage stage = Stage::forward;
  Axis axis = Axis::none;
  int64_t first = 0;  // first layer
  int64_t count = 1;  // repetitions
  Turn turn = Turn::none;
  bool reverse = false;         // layers from last to first
  std::optional<int32_t> skip;  // a Scalar; where it is nonzero at run time the region is passed over
  std::vector<Carry> carries;
  std::vector<Item> items;

  int64_t layer_of(int64_t iteration) const { return reverse ? first + count - 1 - iteration : first + iteration; }
  Region& add(Region child);
  Op& add(Op op);
};

struct Item {
  std::variant<Op, Region> value;

  Op* op() { return std::get_if<Op>(&value); }
  const Op* op() const { return std::get_if<Op>(&value); }
  Region* region() { return std::get_if<Region>(&value); }
  const Region* region() const { return std::get_if<Region>(&value); }
};

// Where a weight's first value comes from.
// `row_norms`: lengths of the rows of the weight that `source` names.
enum class Origin : uint8_t { checkpoint, lora_a, zeros, row_norms };

// What the optimizer keeps of a weight: a view of a flat buffer, under the name that files give it.
struct OptimizerState {
  Slot slot;
  const char* name;
  TensorId tensor = kNone;
};

// How a frozen weight is quantized: its tensor holds codes, in blocks over the flattened matrix (of one expert), and beside
// it lie the blocks' scales.
struct Quantization {
  int64_t block_size = 0;     // elements to a scale
  DType values = DType::f32;  // that products round its numbers to
  TensorId absmax = kNone;    // f32, or u8 codes of the signed dynamic map where they are quantized themselves: [blocks]
  TensorId nested_absmax = kNone;  // f32 [blocks / kNestedBlock rounded up]; kNone: absmax are f32
  TensorId absmax_offset = kNone;  // f32 [1], likewise
};

// What each rank of a group has of a weight: of every segment along an axis its even part, by its place in the group.
// Segments are what one product makes of several things, such as queries, keys and values.
struct Slice {
  RankGroup group = RankGroup::tensor;
  size_t axis = 0;                     // of the parameter
  std::vector<int64_t> segments = {};  // their whole sizes
};

// A weight of the model or of an adapter, with its place in the Program.
struct Weight {
  Parameter parameter;  // name, shape, whole; folded over layers
  std::string source;   // name in the checkpoint (a tied head saved by LoRA starts from the embedding)
  TensorId tensor = kNone;
  TensorId gradient = kNone;           // view of a flat gradient buffer, if trained
  std::vector<OptimizerState> states;  // if trained
  std::optional<Quantization> quantization;
  std::optional<Slice> slice;  // that this rank has of it, in its tensor, gradient and states
  bool trainable = false;
  bool adapter = false;  // belongs to the adapter's files
  bool at_ends = false;  // in the first stage and the last, which train it alike: an embedding that is the head too
  bool repeats = false;  // … the last stage's: its norm and its file are the first's matter
  bool copied = false;   // beside the model's own: a tied module that is saved apart
  bool decays = true;    // under weight decay; norms are not, as in Hugging Face's Trainer
  Origin origin = Origin::checkpoint;

  TensorId state(Slot slot) const {  // kNone where absent
    for (const OptimizerState& state : states)
      if (state.slot == slot) return state.tensor;
    return kNone;
  }
};

// What an adapter puts beside a product; kNone: it has none.
struct AdapterOps {
  OpId down = kNone, up = kNone;  // low [M, r] = x A^T, and low B^T added to what the product gives
  OpId scale = kNone;             // DoRA's, of columns
  OpId dropout = kNone;           // of x
};

// A product with a linear module's weight. Its ops are in the forward; in generation each step has products of its own.
struct Linear {
  int32_t weight = kNone;                  // index into Program::weights
  TensorId input = kNone, output = kNone;  // of the module, its bias included
  OpId product = kNone;
  AdapterOps adapter = {};
};

// Tensors that the host fills or reads by name.
struct Interface {
  TensorId tokens = kNone, positions = kNone, document_start = kNone, target_rows = kNone, target_tokens = kNone;
  TensorId predictions = kNone;  // evaluation
  TensorId scalars = kNone, inverse_frequency = kNone, local_inverse_frequency = kNone;
  TensorId router_correction = kNone;  // [E] fp32 for each layer with experts, added to scores when they are chosen
};

// One forward of generation: so many new tokens, whose last one's hidden state it leaves for the head.
struct GenerationStep {
  int64_t rows = 0;
  TensorId tokens = kNone, positions = kNone;
};

struct Generation {
  int64_t capacity = 0;               // tokens of a sequence: rows of each layer's cache
  std::vector<GenerationStep> steps;  // by rows, descending; the last has one
  TensorId logits = kNone;            // [V] fp32, of the last token
  TensorId fetched = kNone;           // … for the host, from when Section::head has run until the next region runs
  TensorId order = kNone;             // [V] i32: room for the sampler, as long
};

// Layers whose blocks are treated alike: the loops region(Section::blocks, i) and region(Section::blocks_backward, i), where
// i is the index in Program::blocks. The loop's carries are its boundary.
struct BlockRun {
  // What its forward keeps for its backward: storages with an instance for each layer, ascending. A pass that brings some of
  // it back in another way takes it off this list.
  std::vector<StorageId> saved = {};
  std::vector<StorageId> away = {};  // of those: what waits in the far home
};

struct Program {
  std::vector<Storage> storages;
  std::vector<Tensor> tensors;
  std::vector<Weight> weights;
  Interface interface;    // of training micro-batches
  Interface evaluation;   // of evaluation batches
  Generation generation;  // of a Program that generates
  Region root;
  int64_t layers = 0;
  std::vector<bool> local_layers;  // [L]: attention is windowed and rotates by the local table; empty: in none
  int64_t batch = 0, seq_len = 0, micro_batches = 0;
  RankMesh mesh;      // of the ranks that train together
  int64_t stage = 0;  // of its pipeline, that this is the Program of
  struct Parameters {
    int64_t total = 0, trainable = 0;
  };
  std::optional<Parameters> of_all_stages;  // where this is one of several
  std::vector<std::string> notes;           // decisions a user should be told: what PEFT does with a tied head …

  // Handles
  std::vector<Linear> linears;      // of blocks, in the order of their products
  Linear head;                      // its product is the loss; in generation that of the last row
  OpId loss = kNone;                // in the forward, and in the evaluation's; kNone in generation
  std::vector<OpId> token_lookups;  // embeddings of tokens: one, in generation one for each step
  std::vector<BlockRun> blocks;     // when differentiated
  OpId op_ids = 0;                  // given so far

  // Gives the op an id of its own.
  OpId identify(Op& op) { return op.id = op_ids++; }

  StorageId add_storage(Storage storage);
  TensorId add_tensor(Tensor tensor);
  // A tensor with a storage of its own.
  TensorId make(std::string name, DType dtype, std::vector<Extent> shape, Role role, Lifetime lifetime = Lifetime::computed);
  // Another view of the same bytes.
  TensorId view(TensorId id, std::string name, std::vector<Extent> shape);

  const Tensor& tensor(TensorId id) const { return tensors[static_cast<size_t>(id)]; }
  Tensor& tensor(TensorId id) { return tensors[static_cast<size_t>(id)]; }
  const Storage& storage(StorageId id) const { return storages[static_cast<size_t>(id)]; }
  Storage& storage(StorageId id) { return storages[static_cast<size_t>(id)]; }

  Home home_of(TensorId id) const { return storage(tensor(id).storage).home; }

  // Of all stages.
  int64_t trainable_parameters() const;
  int64_t total_parameters() const;  // of the model, without adapters

  // The one region of this section and index; throws std::logic_error if there is none, or another (mistakes in snug).
  Region& region(Section section, int32_t index = 0);
  const Region& region(Section section, int32_t index = 0) const;
  int32_t count(Section section) const;  // regions of it
};

// What a pass presumes of the Program that it is given; throws std::logic_error where it is not so (a mistake in snug).
void presume(bool condition, const std::string& what);
inline void presume(bool condition, const char* what) {  // searches presume millions of times
  if (!condition) presume(false, std::string(what));
}

// Calls visit(op, region) for every op below `region`, each body once.
template <class Visit>
void for_each_op(const Region& region, Visit&& visit) {
  for (const Item& item : region.items) {
    if (const Op* op = item.op()) visit(*op, region);
    if (const Region* child = item.region()) for_each_op(*child, visit);
  }
}
template <class Visit>
void for_each_op(Region& region, Visit&& visit) {
  for (Item& item : region.items) {
    if (Op* op = item.op()) visit(*op, region);
    if (Region* child = item.region()) for_each_op(*child, visit);
  }
}

}  // namespace snug
