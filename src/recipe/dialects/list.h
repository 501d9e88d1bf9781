#pragma once
// The one list of dialects; what there is to know of one stands in its own file, as the Rules that NAME_rules() returns. A
// file that several would take goes to the one that claims it most surely, of equals to the one that stands first here.

// clang-format off
#define SNUG_DIALECTS(DIALECT) \
  DIALECT(torchtune)           \
  DIALECT(autotrain)           \
  DIALECT(axolotl)             \
  DIALECT(llama_factory)       \
  DIALECT(llama_factory_v1)    \
  DIALECT(unsloth)             \
  DIALECT(megatron_swift)      \
  DIALECT(swift)               \
  DIALECT(litgpt)              \
  DIALECT(trl)                 \
  DIALECT(hugging_face)
// clang-format on
