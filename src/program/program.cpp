#include "program/program.h"

#include <stdexcept>

namespace snug {

Region& Region::add(Region child) {
  items.push_back({std::move(child)});
  return std::get<Region>(items.back().value);
}

Op& Region::add(Op op) {
  items.push_back({std::move(op)});
  return std::get<Op>(items.back().value);
}

StorageId Program::add_storage(Storage storage) {
  storages.push_back(std::move(storage));
  return static_cast<StorageId>(storages.size()) - 1;
}

TensorId Program::add_tensor(Tensor tensor) {
  tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(tensors.size()) - 1;
}

TensorId Program::make(std::string name, DType dtype, std::vector<Extent> shape, Role role, Lifetime lifetime) {
  Tensor tensor{.name = name, .dtype = dtype, .shape = std::move(shape)};
  tensor.storage = add_storage({.name = std::move(name), .bytes = tensor.bytes(), .role = role, .lifetime = lifetime});
  return add_tensor(std::move(tensor));
}

TensorId Program::view(TensorId id, std::string name, std::vector<Extent> shape) {
  Tensor tensor = this->tensor(id);
  tensor.name = std::move(name);
  tensor.shape = std::move(shape);
  return add_tensor(std::move(tensor));
}

int64_t Program::trainable_parameters() const {
  if (of_all_stages) return of_all_stages->trainable;
  int64_t sum = 0;
  for (const Weight& weight : weights)
    if (weight.trainable) sum += weight.parameter.elements() * weight.parameter.instances(layers);
  return sum;
}

int64_t Program::total_parameters() const {
  if (of_all_stages) return of_all_stages->total;
  int64_t sum = 0;
  for (const Weight& weight : weights)
    if (weight.origin == Origin::checkpoint && !weight.copied)
      sum += weight.parameter.elements() * weight.parameter.instances(layers);
  return sum;
}

namespace {

template <class Visit>
void for_each_of(const Region& region, Section section, Visit&& visit) {
  if (region.section == section) visit(region);
  for (const Item& item : region.items)
    if (const Region* child = item.region()) for_each_of(*child, section, visit);
}

}  // namespace

const Region& Program::region(Section section, int32_t index) const {
  const Region* found = nullptr;
  for_each_of(root, section, [&](const Region& region) {
    if (region.index != index) return;
    presume(found == nullptr, "one region of a section and index");
    found = &region;
  });
  if (found == nullptr) presume(false, std::string("a region '") + name_of(section) + "' " + std::to_string(index));
  return *found;
}

Region& Program::region(Section section, int32_t index) {
  return const_cast<Region&>(static_cast<const Program&>(*this).region(section, index));  // NOLINT: one search for both
}

int32_t Program::count(Section section) const {
  int32_t count = 0;
  for_each_of(root, section, [&](const Region&) { ++count; });
  return count;
}

void presume(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error("the program lacks what a pass presumes: " + what);
}

const char* name_of(Role role) {
  constexpr const char* kNames[kRoleCount] = {"weights",     "adapters",  "gradients", "optimizer", "activations",
                                              "temporaries", "workspace", "batch",     "comm"};
  return kNames[static_cast<int>(role)];
}

const char* name_of(Home home) {
  constexpr const char* kNames[kHomeCount] = {"device", "pinned", "host", "disk"};
  return kNames[static_cast<int>(home)];
}

const char* name_of(Stage stage) {
  constexpr const char* kNames[kStageCount] = {"load", "forward", "backward", "optimizer", "evaluate", "generate", "save"};
  return kNames[static_cast<int>(stage)];
}

const char* name_of(Section section) {
  constexpr const char* kNames[] = {"other",           "load",      "keep",  "step",      "micro_batch", "warm_up",
                                    "steady",          "cool_down", "batch", "forward",   "backward",    "blocks",
                                    "blocks_backward", "clear",     "norm",  "optimizer", "scale",       "evaluate",
                                    "generation_step", "head",      "save"};
  return kNames[static_cast<int>(section)];
}

const char* name_of(Lane lane) {
  constexpr const char* kNames[] = {"compute", "copy_in", "copy_out", "comm", "host"};
  return kNames[static_cast<int>(lane)];
}

}  // namespace snug
