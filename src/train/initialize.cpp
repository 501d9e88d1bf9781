#include "train/initialize.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "base/bfloat16.h"
#include "base/error.h"
#include "base/float16.h"
#include "base/philox.h"
#include "formats/safetensors_writer.h"
#include "model/config.h"
#include "model/parameters.h"

namespace snug {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kChunk = int64_t{1} << 18;  // elements

struct Instance {
  const Parameter* parameter;
  uint64_t stream;
};

// The elements [begin, begin + count) of one tensor, in the file's dtype.
void draw(const Instance& instance, const ModelSpec& spec, DType dtype, uint64_t seed, int64_t begin, int64_t count,
          std::byte* out) {
  const Philox random{seed, instance.stream};
  const ParameterKind kind = instance.parameter->kind;
  const bool fixed = kind == ParameterKind::norm || kind == ParameterKind::bias;
  const float start = kind == ParameterKind::norm && !spec.norms_from_zero ? 1.0F : 0.0F;
  const auto range = static_cast<float>(spec.initializer_range);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    const float value = fixed ? start : range * random.normal(static_cast<uint64_t>(begin + i));
    if (dtype == DType::f32) {
      std::memcpy(out + i * 4, &value, 4);
    } else {
      const uint16_t rounded = dtype == DType::f16 ? f32_to_f16(value) : f32_to_bf16(value);
      std::memcpy(out + i * 2, &rounded, 2);
    }
  }
}

}  // namespace

void initialize_checkpoint(const ModelSpec& spec, DType dtype, uint64_t seed, const fs::path& directory,
                           const fs::path& tokenizer) {
  if (dtype != DType::f32 && !is_half(dtype)) throw Error("weights can be written as float32, bfloat16 or float16", "dtype");
  fs::create_directories(directory);
  if (fs::exists(directory / "model.safetensors"))
    throw Error("already holds model.safetensors", directory.string(), "give another --output-dir");
  const std::vector<Parameter> parameters = parameters_of(spec);
  std::map<std::string, Instance> instances;
  std::vector<TensorToWrite> list;
  for (const Parameter& parameter : parameters)
    for (int64_t layer = parameter.first_layer; layer < parameter.end_layer(spec.layers); ++layer) {
      for (int64_t expert = 0; expert < std::max<int64_t>(1, parameter.experts); ++expert) {
        const std::string name = parameter.instance(layer, expert);
        instances[name] = {&parameter, instances.size()};
        const auto stacked = static_cast<int64_t>(parameter.experts > 0);
        list.push_back({name, dtype, {parameter.shape.begin() + stacked, parameter.shape.end()}});
      }
    }
  const fs::path temporary = temporary_name(directory / "model.safetensors");
  SafetensorsWriter writer(temporary, list);
  std::vector<std::byte> chunk(static_cast<size_t>(kChunk * size_of(dtype)));
  for (const TensorEntry& entry : writer.order()) {
    const int64_t elements = entry.elements();
    for (int64_t begin = 0; begin < elements; begin += kChunk) {
      const int64_t count = std::min(kChunk, elements - begin);
      draw(instances.at(entry.name), spec, dtype, seed, begin, count, chunk.data());
      writer.write(std::span(chunk).first(static_cast<size_t>(count * size_of(dtype))));
    }
  }
  writer.finish();
  write_file_atomically(directory / "config.json", format_config(spec, dtype));
  if (!tokenizer.empty())
    for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"})
      if (fs::exists(tokenizer / name)) write_file_atomically(directory / name, read_text_file(tokenizer / name));
  fs::rename(temporary, directory / "model.safetensors");
}

}  // namespace snug
