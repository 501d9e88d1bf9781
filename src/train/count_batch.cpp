#include "train/count_batch.h"

#include <vector>

#include "run/transfer.h"

namespace snug {

namespace {

void count_right(Executor& running, EvaluationCounts& counts) {
  const Program& program = running.program();
  const Interface& io = program.evaluation;
  const Extent targets = program.tensor(io.target_rows).shape.front();
  const auto n = static_cast<int64_t>(running.scalar(static_cast<Scalar>(targets.count)));
  const int64_t length = program.seq_len;
  const auto first_of = [&](TensorId id) {  // row of the batch that this rank has of it
    const Tensor& tensor = program.tensor(id);
    return program.mesh.index(tensor.rank_group, running.transfer().rank()) * tensor.rank_elements;
  };
  const int64_t first_row = first_of(io.target_rows), first_start = first_of(io.document_start);
  const auto numbers = [&](TensorId tensor) { return ElementReader<int32_t>(running.transfer(), tensor); };
  auto predictions = numbers(io.predictions), rows = numbers(io.target_rows), tokens = numbers(io.target_tokens),
       starts = numbers(io.document_start);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = first_row + rows.at(i);
    counts.add(row / length * length + starts.at(row - first_start), predictions.at(i) == tokens.at(i));
  }
}

}  // namespace

void count_batch(Executor& running, RankRings* ranks, EvaluationCounts& counts) {
  const int64_t ways = ranks == nullptr ? 1 : ranks->mesh().size(RankGroup::batch);
  if (ways == 1) {
    count_right(running, counts);
    return counts.end_batch();
  }
  EvaluationCounts here;
  count_right(running, here);
  const EvaluationCounts::Stretch own = here.take_stretch();
  std::vector<EvaluationCounts::Stretch> all(static_cast<size_t>(ways));
  ranks->of(RankGroup::batch).all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  if (ranks->mesh().index(RankGroup::batch, ranks->rank()) == 0) counts.add(all);
}

}  // namespace snug
