#pragma once
// The families of decoders: their names, what transformers assumes where their config.json is silent, which fields they have
// beyond the common ones, and what they fix without saying so.

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "model/model_spec.h"

namespace snug {

class ConfigFields;

struct Family {
  std::string_view model_type, architecture;
  void (*fix)(ModelSpec& spec);  // what every model of the family has
  int64_t max_position;
  int64_t kv_heads = 0;        // 0: as many as query heads
  int64_t head_size = 0;       // 0: C / H
  int64_t sliding_window = 0;  // 0: none
  double norm_eps = 1e-6;
  double rope_theta = 10000.0;
  bool tied = false;
  std::string_view activation = "silu";
  std::span<const std::string_view> fields = {};  // beyond the common ones
  bool plan_only = false;                         // its memory is planned, but it cannot be trained or run yet
  double rotary_share = 1.0;                      // of a head, that turns
  // In place of what most families call their sizes.
  void (*sizes)(const ConfigFields& config, ModelSpec& spec) = nullptr;
  // In place of all this: sizes and tensors one by one, of families whose step is not modelled.
  void (*tensors)(const ConfigFields& config, ModelSpec& spec) = nullptr;
  // What else its config.json says; after all that families have in common.
  void (*details)(const ConfigFields& config, ModelSpec& spec) = nullptr;
};

std::span<const Family> families();
// Those of them that can only be planned.
std::span<const Family> planned_families();

const Family* find_family(std::string_view Family::*name, std::string_view value);  // null: none

// True if the model's family can be planned, but not be trained, run or written.
bool is_plan_only(const ModelSpec& spec);
// Throws Error for such a model: `doing` is what was asked for, "trained".
void refuse_plan_only(const ModelSpec& spec, std::string_view doing);

// Throws Error for a model of which only the parameters are known.
void refuse_unmodelled(const ModelSpec& spec);

std::string supported_families(std::string_view Family::*name);  // "supported: llama, …"

}  // namespace snug
