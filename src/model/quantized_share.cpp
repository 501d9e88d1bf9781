#include "model/quantized_share.h"

#include "base/checked.h"
#include "model/parameters.h"

namespace snug {

QuantizedShare quantized_share(const ModelSpec& spec, bool fused_experts) {
  QuantizedShare share;
  share.parameters = total_parameters(spec);
  for (const Parameter& parameter : parameters_of(spec)) {
    const bool experts = parameter.kind == ParameterKind::expert && parameter.shape.size() == 3;
    const bool apart = experts && !fused_experts && !spec.experts.fused && spec.tensors.empty();
    if (parameter.kind == ParameterKind::linear || apart) continue;
    if (parameter.kind == ParameterKind::router && !fused_experts) continue;
    const int64_t count = checked_mul(parameter.elements(), parameter.instances(spec.layers));
    share.left += count;
    if (experts) share.left_experts += count;
  }
  return share;
}

}  // namespace snug
