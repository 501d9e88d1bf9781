#pragma once
// The kernels of the CPU as functions, for one another and for their tests; everyone else goes through the backend's table
// (kernels/backend.h). `prepare` creates what the call needs for its shape (pointers are ignored), so that the call itself
// allocates nothing; it throws Error if oneDNN cannot work within workspace.bytes.

#include "kernels/ops/activation.h"
#include "kernels/ops/add.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/bias.h"
#include "kernels/ops/cached_attention.h"
#include "kernels/ops/columns.h"
#include "kernels/ops/dora.h"
#include "kernels/ops/dropout.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/expert_matmul.h"
#include "kernels/ops/gradients.h"
#include "kernels/ops/head_loss.h"
#include "kernels/ops/layer_norm.h"
#include "kernels/ops/matmul.h"
#include "kernels/ops/noise.h"
#include "kernels/ops/optimizers.h"
#include "kernels/ops/rms_norm.h"
#include "kernels/ops/rope.h"
#include "kernels/ops/routing.h"

namespace snug::kernels {

class Products;

void matmul(const Matmul& op, Products& products);
void prepare(const Matmul& op, Products& products);
void embedding(const Embedding& op);
void embedding_backward(const EmbeddingBackward& op);
void rms_norm(const RmsNorm& op);
void rms_norm_backward(const RmsNormBackward& op);
void layer_norm(const LayerNorm& op);
void layer_norm_backward(const LayerNormBackward& op);
void add_bias(const AddBias& op);
void bias_backward(const BiasBackward& op);
void split(const ColumnParts& op);
void join(const ColumnParts& op);
void rope_table(const RopeTable& op);
void rope(const Rope& op);
void activation(const ActivationGate& op);
void activation_backward(const ActivationGateBackward& op);
void add(const Add& op);
void attention(const Attention& op);
void attention_backward(const AttentionBackward& op);
void cached_attention(const CachedAttention& op);
void head_loss(const HeadLoss& op, Products& products);
void prepare(const HeadLoss& op, Products& products);
void zero(const Zero& op);
void square_sum(const SquareSum& op);
void clip_factor(const ClipFactor& op);
void update_scale(const UpdateScale& op);
void adamw(const AdamW& op);
void sgd(const Sgd& op);
void lion(const Lion& op);
void adafactor(const Adafactor& op);
void dropout(const Dropout& op);
void noise(const Noise& op);
void dora_norm(const DoraNorm& op);
void scale_columns(const ScaleColumns& op);
void scale_columns_backward(const ScaleColumnsBackward& op);
void route(const Route& op);
void route_backward(const RouteBackward& op);
void gather_rows(const GatherRows& op);
void gather_rows_backward(const GatherRowsBackward& op);
void combine(const Combine& op);
void combine_backward(const CombineBackward& op);
void expert_matmul(const ExpertMatmul& op, Products& products);
void prepare(const ExpertMatmul& op, Products& products);

}  // namespace snug::kernels
