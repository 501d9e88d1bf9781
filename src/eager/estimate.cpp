#include "eager/estimate.h"

#include "eager/trainer.h"

namespace snug::eager {

Plan estimate(const ModelSpec& spec, const Setup& setup, const StackProfile& stack, const Target& target,
              const std::function<void(const Event&)>& listener) {
  AllocatorSettings settings;
  if (target.memory_bytes > 0) settings.limit_bytes = target.memory_bytes;
  Device device(settings);
  device.listener = listener;
  Plan plan;
  {
    Torch torch(device, stack, target.compute_capability);
    Decoder decoder(torch, spec, setup);
    decoder.load();
    decoder.prepare();
    decoder.adapt();
    device.release_cached();
    plan.static_bytes = device.totals().allocated_bytes;
    device.reset_peaks();
    Trainer trainer(torch, decoder, setup);
    trainer.train(setup.steps);
    plan.steady_bytes = device.totals().allocated_bytes;
  }
  plan.phase = device.peak_phase();
  plan.breakdown = device.bytes_at_peak();
  for (size_t i = 0; i < kPhases; ++i) {
    plan.phases[i] = device.peak(static_cast<Phase>(i));
    plan.allocated_bytes = std::max(plan.allocated_bytes, plan.phases[i].allocated_bytes);
    plan.reserved_bytes = std::max(plan.reserved_bytes, plan.phases[i].reserved_bytes);
  }
  return plan;
}

}  // namespace snug::eager
