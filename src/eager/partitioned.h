#pragma once
// DeepSpeed's stage 3 (deepspeed/runtime/zero/stage3.py, partitioned_param_coordinator.py, partition_parameters.py): each
// rank keeps its part of every parameter; a module's are gathered before it runs, those of the next modules ahead, and given
// back once it will be long until they are used again. The first step records the order of modules, later ones go by it.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "eager/optimizer.h"
#include "eager/setup.h"

namespace snug::eager {

class PartitionedModel {
 public:
  PartitionedModel(Torch& torch, const Setup& setup) : t_(torch), setup_(setup) {}

  // A model that from_pretrained builds where DeepSpeed is known of (deepspeed.zero.Init): parameters come in parts, made
  // in `dtype` at first.
  void load(const std::vector<Tensor*>& parameters, DType dtype);
  // `parameters` that were not loaded in parts lie on the host; those of `trained` get gradients and states.
  void wrap(const std::vector<Tensor*>& parameters, const std::vector<Trained>& trained);
  // This rank's parts for the optimizer, each of them a group of its own.
  std::vector<Trained> partitions();

  // A module's forward pass, with hooks around it and around its backward. `key` tells modules apart that have the same
  // parameters.
  Tensor call(const void* key, const std::vector<const Tensor*>& parameters, const Tensor& input,
              const std::function<Tensor(const Tensor&)>& forward);

  void end_backward();
  void step(Optimizers& optimizer, const std::function<void()>& begin);

 private:
  struct Gather;
  struct Module;
  struct Parameter {
    Tensor* tensor = nullptr;
    int64_t number = 0, share = 0;  // elements of a rank's part
    bool persists = false, trained = false, available = false;
    int64_t fetched_until = -1;  // the last use in the order of modules that it was fetched for
    std::set<const Module*> users;
    std::shared_ptr<Gather> gather;  // on its way, or done and not yet asked for
    Tensor part;                     // until those of what is trained are laid flat
  };
  struct Gather {
    Tensors flat;  // one for each dtype
    std::vector<Parameter*> parameters;
    bool complete = false;
  };
  struct Module {
    std::vector<Parameter*> parameters;
    std::set<Parameter*> recomputed;  // frozen ones that a recomputation during its backward gathered
  };
  struct Use {
    Parameter* parameter;
    int64_t step;
  };
  struct Group {
    std::vector<Parameter*> parameters;
    Tensor master;
  };

  Parameter& enlist(Tensor* tensor);
  void cut(Parameter& parameter);
  int64_t make_groups(const std::vector<Trained>& trained);
  Module& module_of(const void* key, const std::vector<const Tensor*>& parameters);
  void fetch(Module& module, bool forward);
  void fetch_ahead(const Module& module);
  void release(Module& module, bool forward);
  std::vector<Parameter*> releasable(const Module& module);
  void gather(std::vector<Parameter*> parameters);
  void wait(Parameter& parameter);
  void give_back(Parameter& parameter);
  void pass(int64_t gathers);
  void arrive(Parameter& parameter);
  void reduce();

  Torch& t_;
  const Setup& setup_;
  std::map<const Tensor*, Parameter> parameters_;
  std::map<const void*, Module> modules_;
  std::vector<Group> groups_;
  Tensor flat_, gradients_, bucket_;
  std::vector<Parameter*> in_bucket_, persistent_;
  int64_t elements_ = 0, live_ = 0;   // in the bucket; of gathered parameters
  std::vector<Module*> in_backward_;  // modules whose backward runs, the last begun last
  std::vector<const Module*> order_;  // as the first step ran them
  std::vector<Use> uses_;             // of parameters in that order
  size_t next_use_ = 0;
  int64_t now_ = 0;                               // modules fetched in this step
  std::deque<std::pair<int64_t, int64_t>> used_;  // given back, maybe still in use: after how many gathers, where
  int64_t waited_ = 0;                            // gathers that were waited for
  bool recorded_ = false;
};

}  // namespace snug::eager
