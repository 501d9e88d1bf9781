#pragma once
// Windows: what does not lie in this rank's memory is brought into a window of it around the ops that use it, a layer's
// bytes at a time: from the far home by pages, from the parts that ranks hold by collectives.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "program/program.h"

namespace snug {

// What is fetched and sent at once: all that a storage has of a layer, or one view of a flat buffer in it, or one unit of a
// buffer that is spread over ranks.
struct Piece {
  StorageId storage = kNone;
  int64_t offset = 0, bytes = 0;  // of the first layer's
  bool in_flat_buffer = false;
  std::string name;
  TensorId part = kNone;    // this rank's; kNone: the piece lies in the far home
  bool per_layer = false;   // each layer has one …
  int64_t first_layer = 0;  // … from this on
  int64_t turns = 1;        // windows that layers take in turn

  bool holds(const Tensor& tensor) const {
    return tensor.storage == storage && tensor.offset >= offset && tensor.offset < offset + bytes &&
           tensor.spread == (part != kNone);
  }
};

Piece all_of(const Program& program, StorageId id);
// Throws std::logic_error where it is not whole pages.
Piece piece_of(const Program& program, TensorId view);
// All bytes of the piece that the tensor is a view of, in the layer whose turn it is.
TensorId whole_of(Program& program, const Piece& piece, TensorId id);
Op page_in(TensorId far, TensorId window);

// Stands for a piece where ops see a layer's bytes of it.
class LayerWindow {
 public:
  // `turns`: windows that follow each other from layer to layer, for what is handed from one to the next.
  LayerWindow(Program& program, const Piece& piece, int64_t turns);

  // The same view in the window.
  TensorId twin(TensorId id);
  // All of it, as numbers of the piece.
  TensorId whole(DType dtype);

 private:
  Program& program_;
  Piece piece_;
  StorageId storage_ = kNone;
  int64_t turns_;
  std::map<TensorId, TensorId> twins_;
};

// What a body does with what lies elsewhere: fetch each instance before the first op that uses it, send it behind the last
// that writes it, or both; or make it from nothing and send it.
enum class Moves : uint8_t { in, out, both, made };

// The ops of a body see the piece through the window; regions within are bodies of their own.
void move(Program& program, Region& body, const Piece& piece, LayerWindow& window, Moves moves);
// Each body below `region` that uses the piece has a window of its own.
void move_apart(Program& program, Region& region, const Piece& piece, Moves moves);

// The innermost first: what is put into a body moves the regions within.
std::vector<Region*> bodies_of(Region& region);
bool uses(const Program& program, const Region& body, const Piece& piece);

template <class Visit>
void for_each_body(const Region& region, const Visit& visit) {
  for (const Item& item : region.items)
    if (const Region* child = item.region()) for_each_body(*child, visit);
  visit(region);
}

}  // namespace snug
