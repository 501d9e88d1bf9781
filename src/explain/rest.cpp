#include "explain/rest.h"

#include <algorithm>
#include <map>
#include <span>
#include <vector>

namespace snug {

namespace {

// An allocation of the program's own thread.
struct OwnRequest {
  size_t event = 0;
  const CallPath* path = nullptr;
};

std::vector<OwnRequest> own_requests(const MomentOfFailure& at) {
  std::vector<OwnRequest> requests;
  for (size_t i = 0; i <= at.event; ++i) {
    const Event& event = at.snapshot.event(at.replay.device(), i);
    if (event.action != Action::alloc && event.action != Action::oom) continue;
    const CallPath& path = at.reader.paths().of(event.stack);
    if (!path.engine && !path.frames.empty()) requests.push_back({i, &path});
  }
  return requests;
}

// The last requests that were called from where the moment stands at a depth.
std::span<const OwnRequest> called_from(std::span<const OwnRequest> requests, size_t depth) {
  const FrameId here = requests.back().path->frames[depth];
  size_t first = requests.size() - 1;
  const auto stays = [&](const OwnRequest& request) {
    return request.path->frames.size() > depth && request.path->frames[depth] == here;
  };
  while (first > 0 && stays(requests[first - 1])) --first;
  return requests.subspan(first);
}

// Events at which the line comes again that came first at this depth; fewer than two: it comes once.
std::vector<size_t> repeats_at(std::span<const OwnRequest> requests, size_t depth) {
  std::vector<size_t> begins;
  FrameId first = 0, last = 0;
  for (const OwnRequest& request : requests) {
    if (request.path->frames.size() <= depth) continue;
    const FrameId frame = request.path->frames[depth];
    if (begins.empty()) first = frame;
    if (frame == first && (begins.empty() || last != first)) begins.push_back(request.event);
    last = frame;
  }
  return begins;
}

// Where the layers of the forward pass began that the moment is in.
std::vector<size_t> layer_begins(const MomentOfFailure& at) {
  const std::vector<OwnRequest> all = own_requests(at);
  if (all.empty() || all.back().event != at.event) return {};
  const CallPath& here = *all.back().path;
  std::span<const OwnRequest> requests = all;
  for (size_t depth = 0; depth < here.frames.size(); ++depth) {
    requests = called_from(requests, depth);
    const size_t deeper = depth + 1;
    if (deeper <= here.module || deeper >= here.frames.size()) continue;
    if (std::vector<size_t> begins = repeats_at(requests, deeper); begins.size() >= 2) return begins;
  }
  return {};
}

struct LayerCourse {
  int64_t begin_bytes = 0, peak_bytes = 0;
};

std::vector<LayerCourse> layers_of(const MomentOfFailure& at, const std::vector<size_t>& begins) {
  Replay replay(at.snapshot, at.replay.device());
  std::vector<LayerCourse> layers;
  for (size_t i = 0; i < begins.size(); ++i) {
    replay.advance_to(begins[i]);
    LayerCourse layer{replay.totals().active_bytes, replay.totals().active_bytes};
    for (const size_t end = i + 1 < begins.size() ? begins[i + 1] : at.event; replay.position() < end;) {
      replay.next();
      layer.peak_bytes = std::max(layer.peak_bytes, replay.totals().active_bytes);
    }
    layers.push_back(layer);
  }
  return layers;
}

// Keys and values of a layer, two tensors; 0: no cache makes tensors of its own.
int64_t cached_of_layer(const MomentOfFailure& at) {
  int64_t bytes = 0, blocks = 0;
  for (const auto& [address, block] : at.replay.live()) {
    if (at.reader.read(block.stack).part != Part::cache) continue;
    bytes += block.bytes;
    ++blocks;
  }
  return blocks >= 2 ? 2 * (bytes / blocks) : 0;
}

}  // namespace

std::optional<int64_t> further_by_weights(const MomentOfFailure& moment, const Contents& held, const Contents& asked,
                                          TorchStage stage, bool merges) {
  const bool copying = stage == TorchStage::load || stage == TorchStage::save;
  if (copying && held.copies_left >= 0 && asked.buckets == 0) {
    // What the adapters' product takes and its scaled copy, in fp32, twice as wide as weights may be.
    const int64_t products = merges ? 4 * held.largest_of_layer : 0;
    return std::max(held.copies_left + products, moment.asked_bytes);
  }
  // Embeddings that are the head too have their gradient last, which is made dense and then added.
  if (held.buckets > 0 && stage == TorchStage::backward)
    return std::max(held.buckets - held.gradients + 2 * held.tied_bytes, moment.asked_bytes);
  if (asked.buckets > 0 && held.weights >= held.buckets + asked.buckets) return held.weights - held.buckets;
  return std::nullopt;
}

std::optional<int64_t> further_by_layers(const MomentOfFailure& moment, int64_t layers, int64_t after) {
  const std::vector<size_t> begins = layer_begins(moment);
  const auto done = static_cast<int64_t>(begins.size()) - 1;
  if (done < 1 || done >= layers) return std::nullopt;
  const std::vector<LayerCourse> seen = layers_of(moment, begins);
  // The first leaves its input behind too, the embeddings: what is cached tells better then.
  int64_t stays = seen.back().begin_bytes - seen[seen.size() - 2].begin_bytes;
  if (const int64_t cached = cached_of_layer(moment); done == 1 && cached > 0) stays = std::min(stays, cached);
  int64_t within = 0;
  for (int64_t i = 0; i < done; ++i)
    within = std::max(within, seen[static_cast<size_t>(i)].peak_bytes - seen[static_cast<size_t>(i)].begin_bytes);
  const int64_t last = seen.back().begin_bytes + stays * (layers - 1 - done);
  const int64_t most = last + std::max(within, stays * (1 + after));
  return std::max(most - moment.replay.totals().active_bytes, moment.asked_bytes);
}

}  // namespace snug
