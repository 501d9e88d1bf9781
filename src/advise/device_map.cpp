#include "advise/device_map.h"

#include <algorithm>

namespace snug {

namespace {

constexpr int64_t kMostRoom = int64_t{1} << 60;  // bytes; more is no machine, and sums must not wrap

// Sums and largest values of a run of parts.
struct Run {
  size_t first = 0, count = 0;
  int64_t weights = 0, gradients = 0, optimizer = 0, activations = 0;
  int64_t temporaries = 0, staging = 0, window = 0;  // largest

  void add(const ModelPart& part) {
    ++count;
    weights = checked_add(weights, part.weights);
    gradients = checked_add(gradients, part.gradients);
    optimizer = checked_add(optimizer, part.optimizer);
    activations = checked_add(activations, part.activations);
    temporaries = std::max(temporaries, part.temporaries);
    staging = std::max(staging, part.staging);
    window = std::max(window, part.weights + part.gradients);
  }
};

// Of a device that computes: `run` lies there, `far` (may be null) lies elsewhere and is copied in to run.
DeviceShare share_of(const DeviceRoom& room, const Run& run, int64_t common, const Run* far) {
  DeviceShare share{.room = room,
                    .first = run.first,
                    .count = run.count,
                    .computes = true,
                    .weights = run.weights,
                    .gradients = run.gradients,
                    .optimizer = run.optimizer,
                    .activations = run.activations,
                    .temporaries = run.temporaries,
                    .common = common};
  if (far != nullptr) {
    share.activations += far->activations;
    share.temporaries = std::max(share.temporaries, far->temporaries);
    share.window = far->window;
  }
  // Loading and updating use the room of activations, which are not there then.
  share.temporaries = std::max(share.temporaries, run.staging - share.activations);
  return share;
}

class MapSearch {
 public:
  MapSearch(const ModelParts& model, const std::vector<DeviceRoom>& rooms) : model_(model), rooms_(rooms) {
    far_from_.resize(size() + 1);
    for (size_t k = size(); k-- > 0;) {
      far_from_[k] = far_from_[k + 1];
      far_from_[k].add(model.parts[k]);
      far_from_[k].first = k;
    }
  }

  std::optional<DeviceMap> run() const {
    std::optional<DeviceMap> best;
    if (size() == 0) return best;
    for (size_t main = 0; main < rooms_.size() && rooms_[main].kind != DeviceKind::disk; ++main) {
      // The host computes only where no accelerator can.
      if (rooms_[main].kind == DeviceKind::host && best) break;
      std::optional<DeviceMap> map = with_main(main);
      if (map && (!best || map->far_parts < best->far_parts)) best = std::move(map);
      if (best && best->far_parts == 0) break;
    }
    return best;
  }

 private:
  size_t size() const { return model_.parts.size(); }

  // The most parts near, with `main` the first device that holds one.
  std::optional<DeviceMap> with_main(size_t main) const {
    int64_t far_room = 0;
    for (const DeviceRoom& room : rooms_)
      if (room.kind > rooms_[main].kind) far_room += std::min(room.bytes, kMostRoom);
    for (size_t near = size(); near >= 1; --near) {
      const Run& far = far_from_[near];
      if (far.weights + far.gradients + far.optimizer > far_room) break;
      if (auto map = with_near(main, near)) return map;
    }
    return std::nullopt;
  }

  std::optional<DeviceMap> with_near(size_t main, size_t near) const {
    DeviceMap map{.main = main, .far_weights = far_from_[near].weights, .far_parts = size() - near};
    for (const DeviceRoom& room : rooms_) map.shares.push_back({.room = room});
    size_t next = 0;
    size_t at = main;
    for (; at < rooms_.size() && rooms_[at].kind == rooms_[main].kind; ++at) {
      fill_near(map.shares[at], next, near, at == main ? &far_from_[near] : nullptr);
      if (at == main && map.shares[at].count == 0) return std::nullopt;
      next += map.shares[at].count;
    }
    if (next < near || !place_far(map, at, near)) return std::nullopt;
    return map;
  }

  // As many of the parts [first, end) as the device can run.
  void fill_near(DeviceShare& share, size_t first, size_t end, const Run* far) const {
    Run run{.first = first};
    DeviceShare best = {.room = share.room, .first = first, .computes = true};
    for (size_t i = first; i < end; ++i) {
      run.add(model_.parts[i]);
      const DeviceShare next = share_of(share.room, run, model_.common_bytes, far);
      if (next.free() < 0) break;
      best = next;
    }
    share = best;
  }

  // Parts from `near` on, on rooms from `at` on: as many as fit on the host beside a window for what lies on disk.
  bool place_far(DeviceMap& map, size_t at, size_t near) const {
    if (near == size()) return true;
    if (at < rooms_.size() && rooms_[at].kind == DeviceKind::host) {
      for (size_t on_host = size() - near;; --on_host) {
        DeviceShare share = far_share(rooms_[at], near, near + on_host);
        share.window = far_from_[near + on_host].window;
        if (share.free() >= 0 && on_disk(map, at + 1, near + on_host)) {
          map.shares[at] = share;
          return true;
        }
        if (on_host == 0) return false;
      }
    }
    return on_disk(map, at, near);
  }

  bool on_disk(DeviceMap& map, size_t at, size_t first) const {
    if (first == size()) return true;
    if (at >= rooms_.size()) return false;
    const DeviceShare share = far_share(rooms_[at], first, size());
    if (share.free() < 0) return false;
    map.shares[at] = share;
    return true;
  }

  DeviceShare far_share(const DeviceRoom& room, size_t first, size_t end) const {
    const Run &from = far_from_[first], &to = far_from_[end];
    DeviceShare share{.room = room, .first = first, .count = end - first};
    share.weights = from.weights - to.weights;
    share.gradients = from.gradients - to.gradients;
    share.optimizer = from.optimizer - to.optimizer;
    return share;
  }

  const ModelParts& model_;
  const std::vector<DeviceRoom>& rooms_;
  std::vector<Run> far_from_;  // parts [k, n) as one run
};

}  // namespace

std::optional<DeviceMap> map_devices(const ModelParts& model, const std::vector<DeviceRoom>& rooms) {
  return MapSearch(model, rooms).run();
}

std::optional<int64_t> least_room(const ModelParts& model, const std::vector<DeviceRoom>& rooms, size_t at) {
  constexpr int64_t kStep = int64_t{1} << 20;
  std::vector<DeviceRoom> changed = rooms;
  const auto fits = [&](int64_t steps) {
    changed[at].bytes = steps * kStep;
    return map_devices(model, changed).has_value();
  };
  int64_t low = 0, high = 1;  // `low` does not fit
  for (; !fits(high); high *= 2) {
    if (high * kStep >= kMostRoom) return std::nullopt;
    low = high;
  }
  while (low + 1 < high) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high * kStep;
}

}  // namespace snug
