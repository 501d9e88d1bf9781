#include "data/preview.h"

#include <optional>

#include "base/error.h"
#include "data/dataset_files.h"
#include "data/example_encoder.h"
#include "data/example_reader.h"
#include "data/template_renderer.h"

namespace snug {
namespace {

PreviewedRow previewed(std::string where, const EncodedRow& row) {
  PreviewedRow result{.where = std::move(where), .tokens = {}, .learned = {}, .length = row.length, .dropped = row.dropped};
  for (const uint32_t token : row.tokens) {
    result.tokens.push_back(static_cast<int32_t>(token & ~kLabelBit));
    result.learned.push_back((token & kLabelBit) != 0);
  }
  return result;
}

}  // namespace

Preview preview(const DatasetRequest& request, const Tokenizer& tokenizer, int64_t rows) {
  ExampleReader reader(request);
  ChatRenderer renderer;
  ExampleEncoder encoder(request, tokenizer, renderer);
  Preview result;
  EncodedRow encoded;
  while (static_cast<int64_t>(result.rows.size()) < rows && reader.advance()) {
    Example example;
    std::optional<Error> problem;
    try {
      example = reader.take();
    } catch (const Error& error) {
      problem = error;
    }
    // A template that is missing or not understood is no fault of the row.
    if (!problem && example.chat && !renderer) renderer = make_template_renderer(request, tokenizer);
    try {
      if (!problem) encoder.encode(example, encoded);
    } catch (const Error& error) {
      problem = error;
    }
    if (problem && request.skip_bad_rows) continue;
    if (problem) throw problem->where().empty() ? Error(problem->problem(), reader.where(), problem->mend()) : *problem;
    result.rows.push_back(previewed(reader.where(), encoded));
  }
  if (result.rows.empty()) throw Error("holds no rows", request.data.string(), "write one JSON object on each line");
  result.format = *reader.format();
  return result;
}

}  // namespace snug
