// snug models: the models that plan knows by name, or all about one.

#include <cstdio>

#include "cli/catalogue_request.h"
#include "cli/commands.h"
#include "model/catalogue.h"
#include "report/model_report.h"

namespace snug::cli {

int models_command(std::span<char* const> words) {
  const CatalogueRequest request = parse_catalogue_request("models", words);
  std::string text;
  if (request.name.empty()) {
    text = request.json ? models_json() : models_text();
  } else {
    const ModelSpec spec = resolve_model(request.name);
    text = request.json ? model_json(spec) : model_text(spec);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace snug::cli
