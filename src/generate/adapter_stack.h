#pragma once
// Several LoRA adapters as one: A = [A1; A2; …], B = [s1 B1, s2 B2, …], so that the stack costs one pass of the ranks' sum
// and computes the sum of what each adds. Modules that an adapter leaves alone are zeros of it.

#include <filesystem>
#include <vector>

#include "formats/adapter.h"
#include "formats/checkpoint.h"
#include "recipe/recipe.h"
#include "run/executor.h"

namespace snug {

class AdapterStack {
 public:
  // Reads the configurations and headers of PEFT directories. Throws Error for what cannot be applied: LoRA on embeddings,
  // DoRA, a module that two adapters save in full, what formats/adapter.h refuses.
  explicit AdapterStack(const std::vector<std::filesystem::path>& directories);

  // What to compile: alpha = r, so that the pass itself scales by one.
  Lora lora() const;

  // Fills the stack's weights, which are zeros. Throws Error for tensors that are missing, misshapen or have no place.
  void load(Executor& executor, std::span<std::byte> staging) const;

 private:
  struct Adapter {
    AdapterConfig config;
    Checkpoint file;
    int64_t first = 0;  // its first rank in the stack
    int64_t ranks = 0;  // of its widest module
  };
  bool load_tensor(Executor& executor, const Adapter& adapter, const Weight& weight, int64_t layer, const std::string& name,
                   std::span<std::byte> staging) const;

  std::vector<Adapter> adapters_;
  int64_t ranks_ = 0;
};

}  // namespace snug
