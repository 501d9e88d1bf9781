#include "ask/pytorch_kernels.h"

#include "ask/pytorch_setup.h"
#include "base/error.h"

namespace snug {

namespace {

// axolotl names them one by one (integrations/liger/args.py); the others all at once.
void ask(const ForeignKey& key, eager::LigerKernels& kernels) {
  const std::string name = key.name.substr(key.name.rfind('.') + 1);
  if (name == "use_liger_kernel" || name == "enable_liger_kernel" || name == "use_liger") {
    kernels = {true, true, true, true};
    return;
  }
  bool* const one = name == "liger_rms_norm"                                   ? &kernels.norm
                    : name == "liger_rope"                                     ? &kernels.rope
                    : name == "liger_glu_activation" || name == "liger_swiglu" ? &kernels.mlp
                    : name == "liger_fused_linear_cross_entropy"               ? &kernels.linear_loss
                                                                               : nullptr;
  if (one == nullptr && name != "liger_layer_norm")  // which no model that is covered has beside RMS norms
    throw Error(name + " is not modelled yet", name, "run the trainer under snug measure");
  if (one != nullptr) *one = true;
}

}  // namespace

bool is_about_liger(const ForeignKey& key) { return key.name.find("liger") != std::string::npos; }

eager::LigerKernels liger_kernels(const Arguments& arguments, const eager::Setup& setup, const eager::StackProfile& stack) {
  eager::LigerKernels kernels;
  if (arguments.has("use-liger-kernel")) kernels = {true, true, true, true};
  if (arguments.foreign)
    for (const ForeignKey& key : arguments.foreign->keys)
      if (is_about_liger(key) && is_on(key)) ask(key, kernels);
  if (!kernels.any()) return kernels;
  const bool of_trl = arguments.foreign && arguments.foreign->dialect == Dialect::trl;
  const bool of_trainer = !arguments.foreign || arguments.foreign->dialect == Dialect::hugging_face || of_trl;
  if (of_trainer) kernels = eager::of_trainer(kernels, setup, stack.trainer_has_liger_for_adapters);
  if (of_trl && stack.sft_always_chunks_loss) {
    kernels.linear_loss = false;  // sft_trainer.py: its own head stays
  } else if (of_trl && stack.sft_chunks_loss) {
    throw Error("Liger's kernels under this version of TRL are not modelled yet", "use_liger_kernel",
                "trl=1.16 or before 1.7");
  }
  return kernels;
}

}  // namespace snug
