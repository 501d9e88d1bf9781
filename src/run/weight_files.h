#pragma once
// Weights between files and the arena: Hugging Face checkpoints and PEFT adapters in and out, optimizer states under their
// logical, unsharded names. Reads go through the planned staging buffer where the dtype changes, straight into place where
// it does not.

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/checksum.h"
#include "recipe/recipe.h"
#include "run/executor.h"
#include "run/quantized_weights.h"

namespace snug {

inline constexpr const char* kStateFile = "optimizer.safetensors";  // of a checkpoint

// What a tensor of the Program is called in files.
enum class Naming : uint8_t { model, adapter, state };

// Fills every weight: from the base checkpoint, or by its origin (LoRA's A from U(-1/sqrt(in), 1/sqrt(in)) as PEFT draws it,
// B zero). Throws Error naming a tensor that is missing, has another shape, or that the model would not use.
void load_model(Executor& executor, const ModelSpec& model, const Checkpoint& base, uint64_t seed, const LoadRoom& room);

// The room that a load op has.
LoadRoom load_room(const Executor& executor, const Op& load);

// Calls visit(index, value) for every element of a tensor of weights, in order, reading through `staging`. Throws Error if
// it is not of the shape that is expected, or not floating point.
void read_numbers(const Checkpoint& checkpoint, const TensorEntry& entry, const std::vector<int64_t>& shape,
                  std::span<std::byte> staging, const std::function<void(int64_t, float)>& visit);

// Replaces the adapter's weights by those of a PEFT adapter directory. Throws Error if it was made for other targets or
// ranks.
void load_adapter(Executor& executor, const std::filesystem::path& directory, const Lora& lora,
                  std::span<std::byte> staging);

// Trained weights of a checkpoint directory (adapter or full), its moments and masters.
void load_state(Executor& executor, const ModelSpec& model, const std::filesystem::path& directory, const Lora& lora,
                std::span<std::byte> staging);

// Where several ranks run the executor all call these together, each with the same directory, and the first one gets the
// sums.

// Writes the weights that users take away: `model.safetensors` (full, with the base model's vision tower), or PEFT's two
// files (LoRA); what lies far goes through `staging`. Returns the files' sums.
std::map<std::string, FileSum> save_weights(const Executor& executor, const ModelSpec& model,
                                            const std::filesystem::path& directory, const Lora& lora,
                                            const std::string& base_model, std::span<std::byte> staging = {});
// Writes `optimizer.safetensors`: moments and masters, those in the far home through `staging`.
std::map<std::string, FileSum> save_state(const Executor& executor, const std::filesystem::path& directory,
                                          std::span<std::byte> staging = {});

}  // namespace snug
