#pragma once
// One walk through a Program's run, which liveness, the timeline and the device map read: its ops as points of a folded line
// of time, the events of its run with layers unfolded (other loops are taken once), and when each instance of a storage is
// used.
//
// Lanes: an op that runs beside compute is done, for whoever wants its operands' bytes, once an op of the compute lane has
// waited for it; that waits for what last wrote what it reads, and for what still uses what it writes, and a lane runs in
// order. What nobody waited for in the body it stands in is held through all of that loop; at its end lanes meet. What
// another lane writes is held from where lanes met before it, in a loop throughout: a copy may begin before compute comes to
// it.

#include <vector>

#include "program/program.h"

namespace snug {

// A region of the tree, once, whatever it repeats.
struct RegionNode {
  const Region* region = nullptr;
  int32_t parent = kNone;
  int32_t depth = 0;
  int32_t layer_loop = kNone;  // the loop over layers that it lies in, or is
  int32_t begin = 0, end = 0;  // its points: [begin, end)
};

struct Point {
  const Op* op = nullptr;
  int32_t node = kNone;
};

struct OpEvent {
  int32_t point = 0;
  int64_t iteration = 0;  // of the loop over layers it lies in
  int64_t layer = 0;      // whose turn it is; 0 outside of layers
};

// When an instance of a storage is used. What there is one of is used alike in every iteration: these are the first's
// events.
struct Span {
  int32_t first = -1, last = -1;            // events; -1: never
  bool one_loop = true;                     // every use lies in the same loop over layers, or every use in none
  int32_t held_from = -1, held_until = -1;  // points between which other lanes may be at work on it; -1: none

  bool used() const { return first >= 0; }
};

struct Events {
  std::vector<RegionNode> nodes;  // the root first
  std::vector<Point> points;
  std::vector<OpEvent> events;           // in order of time
  std::vector<std::vector<Span>> spans;  // by storage, by instance; none of storages that live from load to save
  std::vector<int32_t> homes;            // by storage: the smallest region that has all its uses; kNone: never used

  const RegionNode& node(int32_t index) const { return nodes[static_cast<size_t>(index)]; }
  const Point& point(int32_t index) const { return points[static_cast<size_t>(index)]; }
  const OpEvent& event(int32_t index) const { return events[static_cast<size_t>(index)]; }
  int32_t layer_loop_of(const OpEvent& event) const { return node(point(event.point).node).layer_loop; }  // a node, or kNone
  // The smallest region that has both.
  int32_t common(int32_t a, int32_t b) const;
};

// Throws std::logic_error if something is read before it is written, or used outside of its layers.
Events events_of(const Program& program);

}  // namespace snug
