// snug gpus: the accelerators that plans can be made for by name.

#include <fmt/format.h>

#include <cstdio>

#include "base/error.h"
#include "cli/catalogue_request.h"
#include "cli/commands.h"
#include "report/accelerator_report.h"

namespace snug::cli {

namespace {

const Accelerator& named(const std::string& name) {
  if (const Accelerator* found = find_accelerator(name)) return *found;
  throw Error(fmt::format("'{}' is not in the catalogue of accelerators", name.substr(0, 80)), "",
              fmt::format("nearest: {}; `snug gpus` lists them", nearest_accelerator(name)));
}

}  // namespace

int gpus_command(std::span<char* const> words) {
  const CatalogueRequest request = parse_catalogue_request("gpus", words);
  std::string text;
  if (request.name.empty()) {
    text = request.json ? accelerators_json() : accelerators_text();
  } else {
    const Accelerator& accelerator = named(request.name);
    text = request.json ? accelerator_json(accelerator) : accelerator_text(accelerator);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace snug::cli
