#include "program/passes/tile_mlp.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "program/passes/list.h"

namespace snug {

namespace {

using Storages = std::set<StorageId>;

// How an op takes an operand when it is run for some rows of what it would be run for.
enum class Taken : uint8_t { by_rows, whole };

bool is_one_of(Slot slot, std::initializer_list<Slot> slots) {
  return std::find(slots.begin(), slots.end(), slot) != slots.end();
}

// None: the op needs all rows at once.
std::optional<Taken> taken(const Op& op, Slot slot) {
  const auto by_rows_in = [&](std::initializer_list<Slot> slots) {
    return is_one_of(slot, slots) ? Taken::by_rows : Taken::whole;
  };
  switch (op.kind) {
    case OpKind::activation:
    case OpKind::activation_backward:
    case OpKind::split:
    case OpKind::join:
    case OpKind::add: return Taken::by_rows;
    case OpKind::dropout: return slot == Slot::scalars ? Taken::whole : Taken::by_rows;
    case OpKind::add_bias:
    case OpKind::scale_columns:
    case OpKind::scale_columns_backward: return by_rows_in({Slot::x, Slot::out, Slot::d_out, Slot::d_x});
    case OpKind::bias_backward: return by_rows_in({Slot::d_out});
    case OpKind::rms_norm:
    case OpKind::rms_norm_backward:
    case OpKind::layer_norm:
    case OpKind::layer_norm_backward:
      return by_rows_in({Slot::x, Slot::out, Slot::mean, Slot::rstd, Slot::d_out, Slot::d_x});
    case OpKind::matmul:
      if (!op.attributes.transpose_a) return by_rows_in({Slot::a, Slot::c});
      return by_rows_in({Slot::a, Slot::b});  // and a sum over rows
    default: return std::nullopt;
  }
}

// That a rank has of a micro-batch.
int64_t rows_of(const Program& program) { return program.batch * program.seq_len / program.mesh.context; }

// The ops of one body around its MLP, and what becomes of them.
class Tiling {
 public:
  // `uses`: how many operands of the whole Program each storage is.
  Tiling(Program& program, Region& body, int64_t rows, const std::vector<int64_t>& uses)
      : program_(program), body_(body), all_rows_(rows_of(program)), rows_(rows), uses_(uses) {}

  void run() {
    find_wide();
    if (wide_.empty()) return;
    sort_items();
    find_inner();
    put_in_place();
  }

 private:
  // What activations touch, as many rows as there are tokens and as wide as the MLP's hidden layer; and what is made of that
  // element by element, or of which it is.
  void find_wide() {
    for_each_op(body_, [&](const Op& op, const Region&) {
      if (op.kind == OpKind::activation || op.kind == OpKind::activation_backward) take_rows_of(op);
    });
    for (size_t before = 0; before != wide_.size();) {
      before = wide_.size();
      for_each_op(body_, [&](const Op& op, const Region&) {
        if (is_by_element(op.kind) && touches_wide(op)) take_rows_of(op);
      });
    }
  }

  static bool is_by_element(OpKind kind) {
    return kind == OpKind::dropout || kind == OpKind::split || kind == OpKind::join || kind == OpKind::scale_columns ||
           kind == OpKind::scale_columns_backward;
  }

  void take_rows_of(const Op& op) {
    for (const Operand& operand : op.operands)
      if (taken(op, operand.slot) == Taken::by_rows && has_all_rows(operand.tensor))
        wide_.insert(storage_of(operand.tensor));
  }

  bool has_all_rows(TensorId id) const {
    const Tensor& tensor = program_.tensor(id);
    return !tensor.shape.empty() && tensor.dim(0) == all_rows_ && tensor.shape[0].count == kNone && tensor.chunk_stride == 0;
  }

  StorageId storage_of(TensorId id) const { return program_.tensor(id).storage; }

  bool touches_wide(const Op& op) const {
    return std::any_of(op.operands.begin(), op.operands.end(),
                       [&](const Operand& operand) { return wide_.contains(storage_of(operand.tensor)); });
  }

  bool can_be_tiled(const Op& op) const {
    return std::all_of(op.operands.begin(), op.operands.end(), [&](const Operand& operand) {
      const std::optional<Taken> how = taken(op, operand.slot);
      return how && (*how == Taken::whole ? operand.access != Access::write : has_all_rows(operand.tensor));
    });
  }

  // From the first op that touches what is wide to the last: those of the MLP, and what else was put between them, which
  // goes ahead of all of them or behind.
  void sort_items() {
    size_t end = 0;
    for (size_t i = body_.items.size(); i-- > 0;) {
      const Op* op = body_.items[i].op();
      if (op == nullptr || run_by(op->kind) != RunBy::backend || !touches_wide(*op)) continue;
      begin_ = i;
      if (end == 0) end = i + 1;
    }
    std::vector<Op> between;
    for (size_t i = begin_; i < end; ++i) {
      presume(body_.items[i].op() != nullptr, "an MLP of ops alone");
      between.push_back(std::move(*body_.items[i].op()));
    }
    body_.items.erase(body_.items.begin() + static_cast<int64_t>(begin_), body_.items.begin() + static_cast<int64_t>(end));
    for (Op& op : between) {
      if (can_be_tiled(op) && none_meets(behind_, op)) {
        tiled_.push_back(std::move(op));
      } else if (none_meets(tiled_, op) && none_meets(behind_, op)) {
        ahead_.push_back(std::move(op));
      } else {
        behind_.push_back(std::move(op));
      }
    }
  }

  // Whether the op may change places with all of them.
  bool none_meets(const std::vector<Op>& ops, const Op& op) const {
    return std::none_of(ops.begin(), ops.end(), [&](const Op& other) { return meet(other, op); });
  }

  bool meet(const Op& a, const Op& b) const {
    for (const Operand& x : a.operands)
      for (const Operand& y : b.operands)
        if ((x.access != Access::read || y.access != Access::read) &&
            overlap(program_.tensor(x.tensor), program_.tensor(y.tensor)))
          return true;
    return false;
  }

  // Views of flat buffers lie side by side in every layer.
  static bool overlap(const Tensor& a, const Tensor& b) {
    if (a.storage != b.storage) return false;
    const bool alike = a.layer_stride == b.layer_stride && a.first_layer == b.first_layer && a.layer_turns == b.layer_turns;
    return !alike || (a.offset < b.offset + b.bytes() && b.offset < a.offset + a.bytes());
  }

  // What the MLP's ops make for each other alone, and no layer keeps.
  void find_inner() {
    std::map<StorageId, int64_t> here;
    for (const Op& op : tiled_)
      for (const Operand& operand : op.operands)
        if (taken(op, operand.slot) == Taken::by_rows && is_all_of_its_storage(operand.tensor))
          ++here[storage_of(operand.tensor)];
    for (const auto& [storage, count] : here)
      if (count == uses_[static_cast<size_t>(storage)] && program_.storage(storage).instances == 1) inner_.insert(storage);
    for (const Op& op : behind_)
      presume(run_by(op.kind) != RunBy::backend || !touches_wide(op),
              std::string("rows of their own for ") + name_of(op.kind));
  }

  bool is_all_of_its_storage(TensorId id) const {
    const Tensor& tensor = program_.tensor(id);
    return tensor.offset == 0 && !tensor.instance_by_layer && tensor.bytes() == program_.storage(tensor.storage).bytes;
  }

  // So many rows from `first` on, and in a loop the tiles behind.
  struct Rows {
    int64_t first, count;
  };

  // The rows of a tensor that lies outside, tile after tile.
  Tensor seen(TensorId id, const Rows& rows) const {
    Tensor tensor = program_.tensor(id);
    const int64_t row_bytes = tensor.bytes() / all_rows_;
    presume(tensor.bytes() % all_rows_ == 0, "whole bytes to a row of " + tensor.name);
    tensor.shape[0] = rows.count;
    tensor.offset += checked_mul(rows.first, row_bytes);
    tensor.chunk_stride = checked_mul(rows.count, row_bytes);
    return tensor;
  }

  TensorId tile_of(TensorId id, const Rows& rows, std::map<TensorId, TensorId>& tiles,
                   std::map<StorageId, StorageId>& storages) {
    if (const auto found = tiles.find(id); found != tiles.end()) return found->second;
    Tensor tile = seen(id, rows);
    if (inner_.contains(tile.storage)) {
      const TensorId whole = program_.add_tensor(tile);  // whose elements draws count
      auto storage = storages.find(tile.storage);
      if (storage == storages.end()) {
        Storage copy = program_.storage(tile.storage);
        copy.bytes = tile.chunk_stride;
        storage = storages.emplace(tile.storage, program_.add_storage(std::move(copy))).first;
      }
      tile.storage = storage->second;
      tile.offset = tile.chunk_stride = 0;
      tile.window_of = whole;
    }
    return tiles[id] = program_.add_tensor(std::move(tile));
  }

  std::vector<Item> tiled(const Rows& rows) {
    std::map<TensorId, TensorId> tiles;
    std::map<StorageId, StorageId> storages;
    std::vector<Item> items;
    for (Op op : tiled_) {
      for (Operand& operand : op.operands)
        if (taken(op, operand.slot) == Taken::by_rows) operand.tensor = tile_of(operand.tensor, rows, tiles, storages);
      if (rows.first > 0) op.id = kNone;  // handles know it in the loop
      items.push_back({std::move(op)});
    }
    return items;
  }

  void put_in_place() {
    std::vector<Item> items;
    for (Op& op : ahead_) items.push_back({std::move(op)});
    Region loop{.name = body_.name + ".mlp", .stage = body_.stage, .axis = Axis::chunk, .count = all_rows_ / rows_};
    loop.items = tiled({0, rows_});
    items.push_back({std::move(loop)});
    if (const int64_t left = all_rows_ % rows_; left > 0) {
      std::vector<Item> last = tiled({all_rows_ - left, left});
      std::move(last.begin(), last.end(), std::back_inserter(items));
    }
    for (Op& op : behind_) items.push_back({std::move(op)});
    body_.items.insert(body_.items.begin() + static_cast<int64_t>(begin_), std::make_move_iterator(items.begin()),
                       std::make_move_iterator(items.end()));
  }

  Program& program_;
  Region& body_;
  int64_t all_rows_, rows_;
  const std::vector<int64_t>& uses_;
  Storages wide_, inner_;
  size_t begin_ = 0;
  std::vector<Op> ahead_, tiled_, behind_;
};

void tile_bodies(Program& program, Region& region, int64_t rows, const std::vector<int64_t>& uses) {
  if (region.axis == Axis::layer) return Tiling(program, region, rows, uses).run();
  for (Item& item : region.items)
    if (Region* child = item.region()) tile_bodies(program, *child, rows, uses);
}

// Whole blocks of draws. As high for short rows of data as for long ones, where the recipe names no number of tiles: what
// runs in the plan's arena needs no more than the plan.
int64_t rows_of_a_tile(const ModelSpec& spec, const Recipe& recipe, int64_t tokens) {
  constexpr int64_t kDrawn = 4;
  const int64_t tiles = recipe.tiled_mlp_num_shards;
  return align_up(tiles > 0 ? (tokens + tiles - 1) / tiles : spec.hidden_size, kDrawn);
}

}  // namespace

void tile_mlp(Program& program, int64_t rows) {
  if (rows >= rows_of(program)) return;
  std::vector<int64_t> uses(program.storages.size());
  for_each_op(program.root, [&](const Op& op, const Region&) {
    for (const Operand& operand : op.operands) ++uses[static_cast<size_t>(program.tensor(operand.tensor).storage)];
  });
  tile_bodies(program, program.root, rows, uses);
}

void passes::tile_mlp(Program& program, const StepRequest& request) {
  if (!request.recipe.tiled_mlp) return;
  if (request.model.experts.count > 0)
    throw Error("tiled_mlp: true does not go with a mixture of experts, whose rows are sorted by expert", "recipe",
                "remove it");
  snug::tile_mlp(program, rows_of_a_tile(request.model, request.recipe, rows_of(program)));
}

}  // namespace snug
