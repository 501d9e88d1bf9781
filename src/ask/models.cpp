// snug models: the models that plan knows by name, or all about one.

#include "ask/answers.h"
#include "ask/catalogue_request.h"
#include "model/catalogue.h"
#include "report/model_report.h"

namespace snug {

std::vector<std::string> catalogue_flags() { return {"json"}; }

int answer_models(std::span<char* const> words, Asker& asker) {
  const CatalogueRequest request = parse_catalogue_request("models", words);
  std::string text;
  if (request.name.empty()) {
    text = request.json ? models_json() : models_text();
  } else {
    const ModelSpec spec = resolve_model(request.name);
    text = request.json ? model_json(spec) : model_text(spec);
  }
  asker.print(text);
  return 0;
}

}  // namespace snug
