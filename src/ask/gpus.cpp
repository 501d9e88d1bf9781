// snug gpus: the accelerators that plans can be made for by name.

#include <fmt/format.h>

#include "ask/answers.h"
#include "ask/catalogue_request.h"
#include "base/error.h"
#include "report/accelerator_report.h"

namespace snug {

namespace {

const Accelerator& named(const std::string& name) {
  if (const Accelerator* found = find_accelerator(name)) return *found;
  throw Error(fmt::format("'{}' is not in the catalogue of accelerators", name.substr(0, 80)), "",
              fmt::format("nearest: {}; `snug gpus` lists them", nearest_accelerator(name)));
}

}  // namespace

int answer_gpus(std::span<char* const> words, Asker& asker) {
  const CatalogueRequest request = parse_catalogue_request("gpus", words);
  std::string text;
  if (request.name.empty()) {
    text = request.json ? accelerators_json() : accelerators_text();
  } else {
    const Accelerator& accelerator = named(request.name);
    text = request.json ? accelerator_json(accelerator) : accelerator_text(accelerator);
  }
  asker.print(text);
  return 0;
}

}  // namespace snug
