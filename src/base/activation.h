#pragma once
// The nonlinearities of MLPs, by the names of this code; config.json's names are read in model/config.cpp.

#include <cstdint>

namespace snug {

// silu: x sigmoid(x). gelu_tanh: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), which equals x sigmoid of twice that
// argument (Hendrycks & Gimpel, "Gaussian Error Linear Units", 2016).
enum class Activation : uint8_t { silu, gelu_tanh };

}  // namespace snug
