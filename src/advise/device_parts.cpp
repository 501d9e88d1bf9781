#include "advise/device_parts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "plan/events.h"

namespace snug {

namespace {

// Where something belongs: a part that comes once, or each layer's.
enum class Place : uint8_t { embedding, layer, norm, head, everywhere };

Place place_of(const Parameter& parameter, bool head_is_apart) {
  if (parameter.per_layer) return Place::layer;
  const bool head = parameter.kind == ParameterKind::head || parameter.module == "lm_head";
  if (head) return head_is_apart ? Place::head : Place::embedding;
  const bool embedding = parameter.kind == ParameterKind::embedding || parameter.module == "embed_tokens" ||
                         parameter.module == "wte" || parameter.module == "wpe";
  return embedding ? Place::embedding : Place::norm;
}

std::string module_of(const std::string& parameter_name) { return parameter_name.substr(0, parameter_name.rfind('.')); }

bool runs_model(Stage stage) { return stage == Stage::forward || stage == Stage::backward || stage == Stage::evaluate; }

class Cut {
 public:
  Cut(const Plan& plan, bool weights_only) : plan_(plan), program_(plan.program), weights_only_(weights_only) {
    for (const Weight& weight : program_.weights)
      head_is_apart_ = head_is_apart_ || weight.parameter.kind == ParameterKind::head;
  }

  ModelParts run() {
    constexpr int64_t kMostMapped = 1024;
    if (program_.layers > kMostMapped)
      throw Error(std::to_string(program_.layers) + " layers are too many for a device map", plan_.model.name,
                  "at most 1024");
    name_parts();
    find_weights();
    add_resident();
    if (!weights_only_) {
      walk();
      add_activations();
      add_temporaries();
    }
    return std::move(result_);
  }

 private:
  ModelPart& part_at(Place place, int64_t layer) {
    const auto layers = static_cast<size_t>(program_.layers);
    switch (place) {
      case Place::layer: return result_.parts[1 + static_cast<size_t>(layer)];
      case Place::norm: return result_.parts[1 + layers];
      case Place::head: return result_.parts[2 + layers];
      default: return result_.parts[0];
    }
  }

  void name_parts() {
    result_.parts.push_back({.name = "embedding"});
    for (int64_t layer = 0; layer < program_.layers; ++layer)
      result_.parts.push_back({.name = "layer " + std::to_string(layer), .layer = layer});
    result_.parts.push_back({.name = "final norm"});
    if (head_is_apart_) result_.parts.push_back({.name = "head"});
    for (const Weight& weight : program_.weights) {
      if (weight.adapter || weight.copied) continue;
      const Parameter& parameter = weight.parameter;
      if (!parameter.per_layer) {
        std::vector<std::string>& modules = part_at(place_of(parameter, head_is_apart_), 0).modules;
        const std::string module = module_of(parameter.name);
        if (std::find(modules.begin(), modules.end(), module) == modules.end()) modules.push_back(module);
        continue;
      }
      const std::string stem = parameter.name.substr(0, parameter.name.find("{}"));
      for (int64_t layer = parameter.first_layer; layer < parameter.end_layer(program_.layers); ++layer)
        part_at(Place::layer, layer).modules = {stem + std::to_string(layer)};
    }
    if (plan_.model.tied_embeddings)
      part_at(head_is_apart_ ? Place::head : Place::embedding, 0).modules.emplace_back("lm_head");
    name_modules_without_parts();
  }

  // Modules that a device_map must name though no part of ours holds their numbers.
  void name_modules_without_parts() {
    const std::string& embedding = result_.parts[0].modules.front();
    const std::string root = embedding.substr(0, embedding.rfind('.') + 1);
    if (!plan_.model.learned_positions && !plan_.model.alibi) result_.everywhere.push_back(root + "rotary_emb");
    if (plan_.model.vision_parameters == 0) return;
    for (const char* module : {"model.vision_tower", "model.multi_modal_projector"}) result_.everywhere.emplace_back(module);
  }

  void find_weights() {
    for (const Weight& weight : program_.weights) {
      const Place place = place_of(weight.parameter, head_is_apart_);
      const auto note = [&](TensorId id) {
        if (id != kNone) places_.emplace(id, place), owners_.emplace(id, &weight.parameter);
      };
      note(weight.tensor);
      note(weight.gradient);
      for (const OptimizerState& state : weight.states) note(state.tensor);
      if (!weight.quantization) continue;
      for (TensorId id :
           {weight.quantization->absmax, weight.quantization->nested_absmax, weight.quantization->absmax_offset})
        note(id);
    }
  }

  // Flat buffers are what comes once, each with its padding, then layer after layer of equal size: first what all layers
  // have, then what only some have.
  void add_resident() {
    std::map<StorageId, std::map<int64_t, TensorId>> views;  // by offset
    for (const auto& [id, place] : places_) views[program_.tensor(id).storage][program_.tensor(id).offset] = id;
    for (size_t i = 0; i < program_.storages.size(); ++i) {
      const Storage& storage = program_.storages[i];
      if (storage.lifetime != Lifetime::run || storage.home != Home::device) continue;
      const auto found = views.find(static_cast<StorageId>(i));
      if (found == views.end()) {
        if (!weights_only_) result_.common_bytes += align_up(storage.bytes, kAlignment);
        continue;
      }
      add_buffer(storage, found->second);
    }
  }

  void add_buffer(const Storage& storage, const std::map<int64_t, TensorId>& views) {
    std::map<std::pair<int64_t, int64_t>, int64_t> strides;  // by first layer, and one past the last
    for (const auto& [offset, id] : views)
      if (const int64_t stride = program_.tensor(id).layer_stride; stride > 0)
        strides[{owners_.at(id)->first_layer, owners_.at(id)->end_layer(program_.layers)}] = stride;
    int64_t once = storage.bytes;
    for (const auto& [layers, stride] : strides) {
      for (int64_t layer = layers.first; layer < layers.second; ++layer)
        add(part_at(Place::layer, layer), storage.role, stride);
      once -= stride * (layers.second - layers.first);
    }
    for (auto at = views.begin(); at != views.end(); ++at) {
      if (program_.tensor(at->second).layer_stride > 0 || at->first >= once) continue;
      const auto next = std::next(at);
      const int64_t end = next == views.end() ? once : std::min(once, next->first);
      add(part_at(places_.at(at->second), 0), storage.role, end - at->first);
    }
  }

  void add(ModelPart& part, Role role, int64_t bytes) const {
    if (role == Role::weight) part.weights += bytes;
    if (weights_only_) return;
    if (role == Role::adapter) part.weights += bytes;
    if (role == Role::gradient) part.gradients += bytes;
    if (role == Role::optimizer) part.optimizer += bytes;
  }

  // Which part runs at each point of the timeline, and which part uses each instance of a layered storage last.
  void walk() {
    const Events events = events_of(program_);
    for (const Point& point : events.points) {
      const int32_t loop = events.node(point.node).layer_loop;
      if (loop == kNone) {
        moments_.push_back({place_of_op(*point.op), 0, 0});
      } else {
        const Region& layers = *events.node(loop).region;
        moments_.push_back({Place::layer, layers.first, layers.count});
      }
    }
    for (size_t i = 0; i < events.spans.size(); ++i)
      for (size_t instance = 0; events.spans[i].size() > 1 && instance < events.spans[i].size(); ++instance) {
        const Span& span = events.spans[i][instance];
        if (!span.used()) continue;
        const OpEvent& last = events.event(span.last);
        last_use_[{static_cast<StorageId>(i), static_cast<int64_t>(instance)}] = {
            moments_[static_cast<size_t>(last.point)].place, last.layer};
      }
  }

  // Outside the layers an op belongs where its weights are; one without weights, or with those of many parts, may run
  // anywhere.
  Place place_of_op(const Op& op) const {
    std::set<Place> touched;
    for (const Operand& operand : op.operands)
      if (const auto found = places_.find(operand.tensor); found != places_.end()) touched.insert(found->second);
    return touched.size() == 1 ? *touched.begin() : Place::everywhere;
  }

  // What there is once for each layer is kept for its backward.
  void add_activations() {
    for (const auto& [storage, where] : last_use_)
      part_at(where.first, where.second).activations += align_up(program_.storage(storage.first).bytes, kAlignment);
  }

  // The rest is alive at points of the timeline, whichever part runs there. On the folded timeline the last layer of a run
  // is exact: what it keeps is not yet, or no longer, all alive while it runs, and what is not makes room.
  void add_temporaries() {
    const std::vector<int64_t> beside = alive_beside();
    std::map<int64_t, std::vector<int64_t>> kept;  // by layer: what is alive of its own
    for (size_t time = 0; time < moments_.size(); ++time) {
      const Moment& moment = moments_[time];
      const bool runs = runs_model(plan_.layout.timeline.stages[time]);
      int64_t alive = beside[time];
      if (moment.place == Place::layer && runs) {
        const int64_t last = moment.first + moment.count - 1;
        auto own = kept.find(last);
        if (own == kept.end()) own = kept.emplace(last, alive_of_layer(last)).first;
        alive += own->second[time] - part_at(Place::layer, last).activations;
      }
      const auto raise = [&](ModelPart& part) {
        int64_t& most = runs ? part.temporaries : part.staging;
        most = std::max(most, alive);
      };
      if (moment.place == Place::everywhere) {
        std::for_each(result_.parts.begin(), result_.parts.end(), raise);
      } else if (moment.place == Place::layer) {
        for (int64_t i = 0; i < moment.count; ++i) raise(part_at(Place::layer, moment.first + i));
      } else {
        raise(part_at(moment.place, 0));
      }
    }
  }

  // Bytes at each point of time of what there is once …
  std::vector<int64_t> alive_beside() const {
    std::vector<int64_t> change(moments_.size() + 1, 0);
    for (const Life& life : plan_.layout.timeline.lives)
      if (life.home == Home::device && program_.storage(life.storage).instances == 1) note(change, life, life.bytes);
    return summed(std::move(change));
  }

  // … and of what a layer keeps.
  std::vector<int64_t> alive_of_layer(int64_t layer) const {
    std::vector<int64_t> change(moments_.size() + 1, 0);
    for (const Life& life : plan_.layout.timeline.lives) {
      if (life.home != Home::device || program_.storage(life.storage).instances == 1) continue;
      for (int64_t i = life.first_instance; i < life.first_instance + life.count; ++i)
        if (last_use_.at({life.storage, i}) == std::pair(Place::layer, layer)) note(change, life, life.bytes / life.count);
    }
    return summed(std::move(change));
  }

  static void note(std::vector<int64_t>& change, const Life& life, int64_t bytes) {
    change[static_cast<size_t>(life.birth)] += bytes;
    change[static_cast<size_t>(life.death) + 1] -= bytes;
  }

  static std::vector<int64_t> summed(std::vector<int64_t> change) {
    std::partial_sum(change.begin(), change.end(), change.begin());
    return change;
  }

  struct Moment {
    Place place;
    int64_t first, count;  // layers
  };

  const Plan& plan_;
  const Program& program_;
  bool weights_only_;
  bool head_is_apart_ = false;
  ModelParts result_;
  std::map<TensorId, Place> places_;  // of weights and what belongs to them
  std::map<TensorId, const Parameter*> owners_;
  std::vector<Moment> moments_;  // by point of the timeline
  std::map<std::pair<StorageId, int64_t>, std::pair<Place, int64_t>> last_use_;
};

}  // namespace

int64_t ModelParts::weight_bytes() const {
  int64_t sum = 0;
  for (const ModelPart& part : parts) sum = checked_add(sum, part.weights);
  return sum;
}

ModelParts parts_of(const Plan& plan, bool weights_only) { return Cut(plan, weights_only).run(); }

}  // namespace snug
