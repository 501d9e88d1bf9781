// The backend of a build that only plans: it says so.

#include "base/error.h"
#include "kernels/kernels.h"

namespace snug::kernels {
namespace {

[[noreturn]] void refuse() { throw Error("this build has no kernels", "", "build with the release preset"); }

}  // namespace

void matmul(const Matmul&) { refuse(); }
void prepare(const Matmul&) { refuse(); }
void embedding(const Embedding&) { refuse(); }
void embedding_backward(const EmbeddingBackward&) { refuse(); }
void rms_norm(const RmsNorm&) { refuse(); }
void rms_norm_backward(const RmsNormBackward&) { refuse(); }
void rope_table(const RopeTable&) { refuse(); }
void rope(const Rope&) { refuse(); }
void layer_norm(const LayerNorm&) { refuse(); }
void layer_norm_backward(const LayerNormBackward&) { refuse(); }
void add_bias(const AddBias&) { refuse(); }
void bias_backward(const BiasBackward&) { refuse(); }
void split(const ColumnParts&) { refuse(); }
void join(const ColumnParts&) { refuse(); }
void activation(const ActivationGate&) { refuse(); }
void activation_backward(const ActivationGateBackward&) { refuse(); }
void add(const Add&) { refuse(); }
void attention(const Attention&) { refuse(); }
void attention_backward(const AttentionBackward&) { refuse(); }
void cached_attention(const CachedAttention&) { refuse(); }
void head_loss(const HeadLoss&) { refuse(); }
void prepare(const HeadLoss&) { refuse(); }
void zero(const Zero&) { refuse(); }
void square_sum(const SquareSum&) { refuse(); }
void clip_factor(const ClipFactor&) { refuse(); }
void update_scale(const UpdateScale&) { refuse(); }
void adamw(const AdamW&) { refuse(); }
void sgd(const Sgd&) { refuse(); }
void lion(const Lion&) { refuse(); }
void adafactor(const Adafactor&) { refuse(); }
void dropout(const Dropout&) { refuse(); }
void dora_norm(const DoraNorm&) { refuse(); }
void scale_columns(const ScaleColumns&) { refuse(); }
void scale_columns_backward(const ScaleColumnsBackward&) { refuse(); }
void start_threads(int32_t) { refuse(); }
int64_t prepared_products() { refuse(); }
const char* backend_name() { return "none"; }
void route(const Route&) { refuse(); }
void route_backward(const RouteBackward&) { refuse(); }
void gather_rows(const GatherRows&) { refuse(); }
void gather_rows_backward(const GatherRowsBackward&) { refuse(); }
void expert_matmul(const ExpertMatmul&) { refuse(); }
void prepare(const ExpertMatmul&) { refuse(); }
void combine(const Combine&) { refuse(); }
void combine_backward(const CombineBackward&) { refuse(); }

}  // namespace snug::kernels
