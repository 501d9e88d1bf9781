#pragma once
// The one list of op kinds. Rules, targets, kernels and bindings have a table each with an entry for every line here.

#include <cstdint>

namespace snug {

// Who runs an op of this kind.
enum class RunBy : uint8_t {
  host,      // whoever drives the executor: files, batches
  executor,  // itself: copies between homes
  ranks,     // all ranks together: collectives
  backend,   // a kernel
  nobody     // planned, not run yet
};

// How a CPU takes it: its rows over all threads without a workspace, or as targets/cpu has it.
enum class Sizing : uint8_t { even, own };

// clang-format off
#define SNUG_OP_KINDS(OP)                                                     \
  OP(load, host, even)    /* checkpoint -> weights through the staging buffer */ \
  OP(save, host, even)    /* weights and state -> files */                    \
  OP(batch, host, even)   /* the next micro-batch -> batch tensors */         \
  OP(fetch, host, even)   /* logits -> the host's own room */                 \
  OP(turn, host, even)    /* a micro-batch that was begun before goes on */   \
  OP(embedding, backend, even)                                                \
  OP(embedding_backward, backend, even)                                       \
  OP(rms_norm, backend, even)                                                 \
  OP(rms_norm_backward, backend, own)                                         \
  OP(matmul, backend, own)                                                    \
  OP(rope_table, backend, even)                                               \
  OP(rope, backend, even)                                                     \
  OP(attention, backend, own)                                                 \
  OP(attention_backward, backend, own)                                        \
  OP(cached_attention, backend, own)                                          \
  OP(latent_heads, nobody, even)                                              \
  OP(latent_heads_backward, nobody, even)                                     \
  OP(activation, backend, even)                                               \
  OP(activation_backward, backend, even)                                      \
  OP(layer_norm, backend, even)                                               \
  OP(layer_norm_backward, backend, own)                                       \
  OP(add_bias, backend, even)                                                 \
  OP(bias_backward, backend, own)                                             \
  OP(split, backend, even)                                                    \
  OP(join, backend, even)                                                     \
  OP(add, backend, even)                                                      \
  OP(head_loss, backend, own)                                                 \
  OP(zero, backend, even)                                                     \
  OP(square_sum, backend, own)                                                \
  OP(clip_factor, backend, even)                                              \
  OP(update_scale, backend, even)                                             \
  OP(adamw, backend, even)                                                    \
  OP(sgd, backend, even)                                                      \
  OP(lion, backend, even)                                                     \
  OP(adafactor, backend, own)                                                 \
  /* Mixture of experts */                                                    \
  OP(route, backend, own)                                                     \
  OP(route_backward, backend, even)                                           \
  OP(gather_rows, backend, even)                                              \
  OP(gather_rows_backward, backend, even)                                     \
  OP(expert_matmul, backend, own)                                             \
  OP(combine, backend, even)                                                  \
  OP(combine_backward, backend, even)                                         \
  /* Adapters */                                                              \
  OP(dropout, backend, even)                                                  \
  OP(noise, backend, even)                                                    \
  OP(dora_norm, backend, own)                                                 \
  OP(scale_columns, backend, own)                                             \
  OP(scale_columns_backward, backend, own)                                    \
  /* Between a home and a window in the arena */                              \
  OP(page_in, executor, even)                                                 \
  OP(page_out, executor, even)                                                \
  /* Of all ranks together */                                                 \
  OP(all_reduce, ranks, even)                                                 \
  OP(reduce_scatter, ranks, even)                                             \
  OP(all_gather, ranks, even)                                                 \
  OP(pass_on, ranks, even) /* to the next, what the one before has in turn */  \
  OP(send, ranks, even)    /* to the next of the group */                     \
  OP(receive, ranks, even) /* from the one before */
// clang-format on

enum class OpKind : uint8_t {
#define SNUG_KIND(kind, run_by, sizing) kind,
  SNUG_OP_KINDS(SNUG_KIND)
#undef SNUG_KIND
};

// All of them, in order.
constexpr OpKind kOpKinds[] = {
#define SNUG_KIND(kind, run_by, sizing) OpKind::kind,
    SNUG_OP_KINDS(SNUG_KIND)
#undef SNUG_KIND
};

const char* name_of(OpKind kind);
RunBy run_by(OpKind kind);

}  // namespace snug
