#include "program/rules.h"

#include <stdexcept>
#include <string>

namespace snug {

extern const OpRule kLoadRule, kSaveRule, kBatchRule, kEmbeddingRule, kEmbeddingBackwardRule, kRmsNormRule,
    kRmsNormBackwardRule, kMatmulRule, kRopeTableRule, kRopeRule, kAttentionRule, kAttentionBackwardRule,
    kCachedAttentionRule, kLatentHeadsRule, kLatentHeadsBackwardRule, kActivationRule, kActivationBackwardRule,
    kLayerNormRule, kLayerNormBackwardRule, kAddBiasRule, kBiasBackwardRule, kSplitRule, kJoinRule, kAddRule, kHeadLossRule,
    kZeroRule, kSquareSumRule, kClipFactorRule, kUpdateScaleRule, kAdamWRule, kSgdRule, kLionRule, kAdafactorRule;
extern const OpRule kRouteRule, kRouteBackwardRule, kGatherRowsRule, kGatherRowsBackwardRule, kExpertMatmulRule,
    kCombineRule, kCombineBackwardRule, kPageInRule, kPageOutRule;
extern const OpRule kDropoutRule, kDoraNormRule, kScaleColumnsRule, kScaleColumnsBackwardRule;

const OpRule& rule_of(OpKind kind) {
  static const OpRule* const kRules[kOpKindCount] = {&kLoadRule,
                                                     &kSaveRule,
                                                     &kBatchRule,
                                                     &kEmbeddingRule,
                                                     &kEmbeddingBackwardRule,
                                                     &kRmsNormRule,
                                                     &kRmsNormBackwardRule,
                                                     &kMatmulRule,
                                                     &kRopeTableRule,
                                                     &kRopeRule,
                                                     &kAttentionRule,
                                                     &kAttentionBackwardRule,
                                                     &kCachedAttentionRule,
                                                     &kLatentHeadsRule,
                                                     &kLatentHeadsBackwardRule,
                                                     &kActivationRule,
                                                     &kActivationBackwardRule,
                                                     &kLayerNormRule,
                                                     &kLayerNormBackwardRule,
                                                     &kAddBiasRule,
                                                     &kBiasBackwardRule,
                                                     &kSplitRule,
                                                     &kJoinRule,
                                                     &kAddRule,
                                                     &kHeadLossRule,
                                                     &kZeroRule,
                                                     &kSquareSumRule,
                                                     &kClipFactorRule,
                                                     &kUpdateScaleRule,
                                                     &kAdamWRule,
                                                     &kSgdRule,
                                                     &kLionRule,
                                                     &kAdafactorRule,
                                                     &kRouteRule,
                                                     &kRouteBackwardRule,
                                                     &kGatherRowsRule,
                                                     &kGatherRowsBackwardRule,
                                                     &kExpertMatmulRule,
                                                     &kCombineRule,
                                                     &kCombineBackwardRule,
                                                     &kDropoutRule,
                                                     &kDoraNormRule,
                                                     &kScaleColumnsRule,
                                                     &kScaleColumnsBackwardRule,
                                                     &kPageInRule,
                                                     &kPageOutRule};
  return *kRules[static_cast<int>(kind)];
}

OpCut cut_by_rows(const Program&, const Op&, int32_t threads) { return {.threads = threads}; }

int64_t no_workspace(const Program&, const Op&, int32_t) { return 0; }

Work memory_work(const Program& program, const Op& op) {
  Work work;
  for (const Operand& operand : op.operands) {
    const auto bytes = static_cast<double>(program.tensor(operand.tensor).bytes());
    work.bytes += operand.access == Access::update ? 2 * bytes : bytes;
  }
  work.flops = work.bytes / 4;
  return work;
}

void expect(bool condition, const Op& op, const char* what) {
  if (!condition) throw std::logic_error(std::string(name_of(op.kind)) + ": " + what);
}

}  // namespace snug
