// snug models: the models that plan knows by name.

#include <fmt/format.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "model/catalogue.h"
#include "model/parameters.h"

namespace snug::cli {

int models_command(std::span<char* const> words) {
  if (!words.empty()) throw UsageError("snug models takes no arguments");
  for (const std::string& name : model_names()) {
    const ModelSpec spec = *find_model(name);
    fmt::print("{:<48} {:>9.3f} B parameters, {} layers of {}, vocabulary {}\n", name,
               static_cast<double>(total_parameters(spec)) / 1e9, spec.layers, spec.hidden_size, spec.vocab_size);
  }
  return 0;
}

}  // namespace snug::cli
