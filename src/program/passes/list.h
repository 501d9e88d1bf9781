#pragma once
// The one list of what is made of a forward to train it, in the order that composes. A pass is its own file and a line here;
// it asks the recipe whether there is anything for it to do.

#include "model/model_spec.h"
#include "program/passes/saved_choice.h"
#include "program/program.h"
#include "recipe/recipe.h"

// clang-format off
#define SNUG_PASSES(PASS)                                                        \
  PASS(split_layers)    /* over ranks; first of all, so that what follows knows each rank's share */ \
  PASS(split_sequences) /* likewise */                                           \
  PASS(split_products)  /* likewise */                                           \
  PASS(split_experts)   /* likewise */                                           \
  PASS(lora)                                                                     \
  PASS(quantize)                                                                 \
  PASS(evaluate)       /* with adapters; before a backward, which it must not copy */ \
  PASS(dropout)        /* not in evaluation */                                   \
  PASS(noise)          /* likewise */                                            \
  PASS(differentiate)                                                            \
  PASS(recompute)      /* of what backward reads */                              \
  PASS(place_weights)  /* with their gradients and moments */                    \
  PASS(optimizer)                                                                \
  PASS(optimizer_in_backward)                                                    \
  PASS(offload)        /* before loading, which fills what lies far */           \
  PASS(shard)          /* likewise, by each rank its parts */                    \
  PASS(tile_mlp)       /* with all that was put between its ops */               \
  PASS(ring_attention) /* which is one op until here */                          \
  PASS(pipeline)     /* of all that a micro-batch takes */                       \
  PASS(load)                                                                     \
  PASS(save)
// clang-format on

namespace snug {

// What a pass may ask.
struct StepRequest {
  const ModelSpec& model;
  const Recipe& recipe;
  const Precision& precision;
  const SavedChoice* saved = nullptr;  // where a plan has chosen it; none: as the recipe says
};

namespace passes {

#define SNUG_PASS(name) void name(Program& program, const StepRequest& request);
SNUG_PASSES(SNUG_PASS)
#undef SNUG_PASS

}  // namespace passes

}  // namespace snug
