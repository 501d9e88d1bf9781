#pragma once
// A trained adapter on disk as what it does to weights: for each adapted module two thin matrices whose product, scaled, is
// added; and modules that are replaced. PEFT's files and those of mlx-lm, whose matrices are transposed and whose scale is
// written out (ml-explore/mlx-lm, tuner/lora.py). Knows nothing of the model that it changes.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/adapter.h"
#include "formats/checkpoint.h"

namespace snug {

// weight [rows, columns] += scale * left [rows, rank] * right [rank, columns], in the layout of the weight's file.
struct LowRankChange {
  int64_t rows = 0, columns = 0, rank = 0;
  float scale = 1.0F;
  std::vector<float> left, right;
  std::vector<float> magnitude;  // DoRA: the length [rows] that each changed row gets; empty without
};

// Where the two matrices of a module are.
struct AdaptedModule {
  const TensorEntry *a = nullptr, *b = nullptr;
  const TensorEntry* magnitude = nullptr;
  bool embedding = false;
};

class AdapterFile {
 public:
  // `directory`: one that PEFT, snug or mlx-lm saved. Reads headers only. Throws Error: damaged, or an adapter that does
  // more than these changes.
  explicit AdapterFile(const std::filesystem::path& directory);

  const std::filesystem::path& path() const { return path_; }
  const std::string& base_model() const { return base_model_; }  // what it was trained on, may be empty
  const AdapterConfig& config() const { return config_; }
  bool is_mlx() const { return mlx_; }

  // Module paths ("model.layers.0.self_attn.q_proj") in order, and where their matrices are.
  const std::map<std::string, AdaptedModule, std::less<>>& modules() const { return modules_; }
  // Names of whole tensors ("lm_head.weight") that replace the model's.
  const std::map<std::string, const TensorEntry*, std::less<>>& replacements() const { return replacements_; }

  // Reads the change of one module; throws Error if there is none, or its shapes do not fit one another.
  LowRankChange change_of(std::string_view module_path) const;

  const Checkpoint& tensors() const { return *tensors_; }

 private:
  void read_mlx_config(const std::string& text, const std::string& where);
  void take(const TensorEntry& entry);
  void take_mlx(const TensorEntry& entry);
  void check_pairs() const;
  [[noreturn]] void refuse(const TensorEntry& entry, const std::string& why) const;
  std::vector<float> read(const TensorEntry& entry, bool transposed) const;

  std::filesystem::path path_;
  std::string base_model_;
  AdapterConfig config_;
  bool mlx_ = false;
  float mlx_scale_ = 1.0F;
  std::optional<Checkpoint> tensors_;
  std::map<std::string, AdaptedModule, std::less<>> modules_;
  std::map<std::string, const TensorEntry*, std::less<>> replacements_;
};

// The directories that `words` name; several in one word are separated by commas.
std::vector<std::filesystem::path> adapter_list(const std::vector<std::string>& words);

}  // namespace snug
