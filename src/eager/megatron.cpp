#include "eager/megatron.h"

#include <algorithm>

#include "base/checked.h"

namespace snug::eager {

namespace {

// [out, in] with out cut over ranks, and with in cut; a bias is cut where out is.
int64_t column_parallel(int64_t in, int64_t out, int64_t ranks, bool bias) {
  return checked_mul(in, out / ranks) + (bias ? out / ranks : 0);
}
int64_t row_parallel(int64_t in, int64_t out, int64_t ranks, bool bias) {
  return checked_mul(in / ranks, out) + (bias ? out : 0);
}

int64_t mlp(const MegatronRun& run, int64_t width, int64_t ranks, bool bias) {
  return column_parallel(run.hidden, width * (run.gated ? 2 : 1), ranks, bias) +
         row_parallel(width, run.hidden, ranks, bias);
}

int64_t norm(const MegatronRun& run, int64_t width) { return run.rms_norm ? width : 2 * width; }

int64_t attention(const MegatronRun& run) {
  const int64_t heads = checked_mul(run.heads, run.kv_channels), groups = checked_mul(run.kv_groups, run.kv_channels);
  return column_parallel(run.hidden, heads + 2 * groups, run.tensor, run.biases) +
         row_parallel(heads, run.hidden, run.tensor, run.biases) + (run.qk_norms ? 2 * norm(run, run.kv_channels) : 0);
}

// In 16 bits. The first chunk of the first stage gets ids.
int64_t inputs_of_chunks(const MegatronRun& run, int64_t stage) {
  if (run.pipeline == 1) return 0;
  const int64_t tokens = checked_mul(run.sequence, run.micro_batch) / run.context / (run.sequence_parallel ? run.tensor : 1);
  return checked_mul(checked_mul(checked_mul(tokens, run.hidden), 2 * 2), run.chunks - (stage == 0 ? 1 : 0));
}

}  // namespace

int64_t megatron_layers(const MegatronRun& run, int64_t stage) {
  const bool first = stage == 0, last = stage + 1 == run.pipeline;
  if (first && run.first_layers > 0) return run.first_layers;
  if (last && run.last_layers > 0) return run.last_layers;
  const int64_t said = static_cast<int64_t>(run.first_layers > 0) + static_cast<int64_t>(run.last_layers > 0);
  const int64_t counted = run.layers - run.first_layers - run.last_layers + static_cast<int64_t>(run.counts_embedding) +
                          static_cast<int64_t>(run.counts_loss);
  const int64_t even = counted / std::max<int64_t>(1, run.pipeline - said);
  return even - static_cast<int64_t>(first && run.counts_embedding) - static_cast<int64_t>(last && run.counts_loss);
}

MegatronParameters megatron_parameters(const MegatronRun& run, int64_t stage) {
  const bool first = stage == 0, last = stage + 1 == run.pipeline;
  int64_t layer = 2 * norm(run, run.hidden) + attention(run);
  if (run.experts > 0) {
    layer += checked_mul(run.hidden, run.experts);  // the router, whole
    if (run.shared_expert_ffn > 0) layer += mlp(run, run.shared_expert_ffn, run.tensor, false);
  } else {
    layer += mlp(run, run.ffn, run.tensor, run.biases);
  }
  const int64_t layers = megatron_layers(run, stage);
  MegatronParameters sum{.dense = checked_mul(layers, layer)};
  if (run.experts > 0)
    sum.experts =
        checked_mul(checked_mul(layers, run.experts / run.expert), mlp(run, run.expert_ffn, run.expert_tensor, run.biases));
  const int64_t table = checked_mul(run.vocab / run.tensor, run.hidden);
  if (first) sum.dense += table + checked_mul(run.positions, run.hidden);
  if (last) sum.dense += norm(run, run.hidden) + (first && run.tied ? 0 : table);  // a tied one has a copy on the last stage
  return sum;
}

MegatronBytes megatron_bytes(const MegatronRun& run, int64_t stage) {
  const MegatronParameters parameters = megatron_parameters(run, stage);
  const int64_t all = checked_add(parameters.dense, parameters.experts);
  const int64_t gradient = run.fp16 ? 2 : 4, states = run.fp16 ? 16 : 12;
  const auto part = [&](int64_t count, int64_t ranks) {
    const int64_t shared = run.distributed_optimizer ? std::max<int64_t>(1, ranks / run.optimizer_instances) : 1;
    return checked_mul(count, states) / shared;
  };
  return {.weights = checked_mul(all, 2),
          .gradients = checked_mul(all, gradient),
          .optimizer =
              checked_add(part(parameters.dense, run.data() * run.context), part(parameters.experts, run.expert_data())),
          .inputs = inputs_of_chunks(run, stage)};
}

}  // namespace snug::eager
