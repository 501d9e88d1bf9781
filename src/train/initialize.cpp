#include "train/initialize.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "formats/model_directory.h"
#include "formats/safetensors_writer.h"
#include "model/config.h"
#include "train/random_weights.h"

namespace snug {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kChunk = int64_t{1} << 18;  // elements

void copy_tokenizer(const fs::path& from, const fs::path& to) {
  if (from.empty()) return;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"})
    if (fs::exists(from / name)) write_file_atomically(to / name, read_text_file(from / name));
}

}  // namespace

void initialize_checkpoint(const ModelSpec& spec, DType dtype, uint64_t seed, const fs::path& directory,
                           const fs::path& tokenizer) {
  const RandomWeights weights(spec, dtype, seed, directory);
  fs::create_directories(directory);
  if (fs::exists(directory / "model.safetensors"))
    throw Error("already holds model.safetensors", directory.string(), "give another --output-dir");
  std::vector<TensorToWrite> list;
  for (const TensorEntry& entry : weights.tensors()) list.push_back({entry.name, dtype, entry.shape});
  const fs::path temporary = temporary_name(directory / "model.safetensors");
  SafetensorsWriter writer(temporary, list);
  const int64_t most = kChunk * size_of(dtype);
  std::vector<std::byte> chunk(static_cast<size_t>(most));
  for (const TensorEntry& entry : writer.order())
    for (int64_t begin = 0; begin < entry.bytes; begin += most) {
      const auto piece = std::span(chunk).first(static_cast<size_t>(std::min(most, entry.bytes - begin)));
      weights.read(weights.at(entry.name), begin, piece);
      writer.write(piece);
    }
  writer.finish();
  write_file_atomically(directory / "config.json", format_config(spec, dtype));
  copy_tokenizer(tokenizer, directory);
  fs::rename(temporary, directory / "model.safetensors");
}

QuantizeSummary initialize_quantized(const ModelSpec& spec, DType dtype, uint64_t seed, const QuantizeRequest& request,
                                     const fs::path& tokenizer) {
  check_output(request.output, {}, "initialized", request.overwrite);
  return quantize_tensors(RandomWeights(spec, dtype, seed, request.output), spec, format_config(spec, dtype), request,
                          [&](const fs::path& directory) { copy_tokenizer(tokenizer, directory); });
}

}  // namespace snug
