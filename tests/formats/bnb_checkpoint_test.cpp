// A whole model quantized and written by us, as a user's checkpoint would be. With SNUG_QUANTIZED_OUT=DIRECTORY the three
// models stay there, for tests/oracle/check_quantized.py to let transformers read them.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "formats/bnb_tensors.h"
#include "formats/support_files.h"
#include "quantize/double_quantization.h"
#include "quantize/int8_rows.h"

namespace snug {
namespace {

namespace fs = std::filesystem;

struct Way {
  const char* name;
  FourBit type;
  bool nested, int8;
};

const fs::path kModel = fs::path(SNUG_SOURCE_DIR) / "tests/golden/untied";

template <class T>
std::vector<std::byte> bytes_of_all(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// Gives its bytes to the tensor of this name.
void fill(std::vector<TensorWithBytes>& tensors, const std::string& name, std::vector<std::byte> bytes) {
  for (TensorWithBytes& one : tensors)
    if (one.tensor.name == name) one.bytes = std::move(bytes);
}

std::vector<TensorWithBytes> quantized(const Way& way, const TensorEntry& entry, std::span<const std::byte> bytes) {
  const Values values{bytes, entry.dtype(), 0, entry.name};
  if (way.int8) {
    std::vector<int8_t> codes(static_cast<size_t>(values.count()));
    std::vector<float> absmax(static_cast<size_t>(entry.shape[0]));
    quantize_int8_rows(values, entry.shape[1], codes, absmax);
    auto tensors = int8_tensors(entry.name, entry.shape[0], entry.shape[1]);
    tensors[0].bytes = bytes_of_all(codes);
    tensors[1].bytes = bytes_of_all(absmax);
    return tensors;
  }
  QuantState state{.format = {way.type, 64}, .dtype = entry.dtype(), .shape = entry.shape, .nested = way.nested};
  std::vector<uint8_t> codes(static_cast<size_t>(packed_bytes(values.count())));
  std::vector<float> absmax(static_cast<size_t>(state.blocks()));
  quantize_4bit(state.format, values, codes, absmax);
  std::vector<uint8_t> absmax_codes(absmax.size());
  std::vector<float> nested(static_cast<size_t>(state.nested_blocks()));
  if (way.nested) {
    state.nested_offset = nested_offset(absmax);
    quantize_absmax(absmax, state.nested_offset, absmax_codes, nested);
  }
  auto tensors = four_bit_tensors(entry.name, state);
  fill(tensors, entry.name, bytes_of_all(codes));
  fill(tensors, entry.name + ".absmax", way.nested ? bytes_of_all(absmax_codes) : bytes_of_all(absmax));
  fill(tensors, entry.name + ".nested_absmax", bytes_of_all(nested));
  return tensors;
}

void write_config(const Way& way, const fs::path& directory) {
  nlohmann::json config = nlohmann::json::parse(contents(kModel / "config.json"));
  config["quantization_config"] = {{"quant_method", "bitsandbytes"},
                                   {"load_in_4bit", !way.int8},
                                   {"load_in_8bit", way.int8},
                                   {"bnb_4bit_quant_type", name_of(way.type)},
                                   {"bnb_4bit_use_double_quant", way.nested}};
  put(directory / "config.json", config.dump(2));
}

void write_model(const Way& way, const fs::path& directory) {
  const Checkpoint model(kModel);
  std::map<std::string, TensorWithBytes> tensors;
  for (const TensorEntry& entry : model.tensors()) {
    std::vector<std::byte> bytes(static_cast<size_t>(entry.bytes));
    model.read(entry, 0, bytes);
    if (entry.name.find("_proj") == std::string::npos) {
      tensors[entry.name] = {{entry.name, entry.dtype(), entry.shape}, bytes};
      continue;
    }
    for (TensorWithBytes& one : quantized(way, entry, bytes)) tensors[one.tensor.name] = std::move(one);
  }
  std::vector<TensorToWrite> list;
  for (const auto& [name, tensor] : tensors) list.push_back(tensor.tensor);
  SafetensorsWriter writer(directory / "model.safetensors", list);
  for (const TensorEntry& entry : writer.order()) writer.write(tensors.at(entry.name).bytes);
  writer.finish();
  write_config(way, directory);
}

TEST(BnbCheckpoint, a_model_that_was_quantized_and_written_is_read_again) {
  const Scratch scratch;
  const char* const kept = std::getenv("SNUG_QUANTIZED_OUT");
  const fs::path root = kept != nullptr ? fs::path(kept) : scratch.path();
  for (const Way& way : {Way{"nf4", FourBit::nf4, true, false}, Way{"fp4", FourBit::fp4, false, false},
                         Way{"int8", FourBit::nf4, false, true}}) {
    fs::create_directories(root / way.name);
    write_model(way, root / way.name);
    const Checkpoint written(root / way.name);
    int weights = 0;
    for (const TensorEntry& entry : written.tensors()) {
      const auto four_bit = find_four_bit(written, entry.name);
      EXPECT_EQ(four_bit && four_bit->state.nested, four_bit && way.nested);
      EXPECT_FALSE(four_bit && way.int8);
      weights += four_bit || find_int8(written, entry.name) ? 1 : 0;
    }
    EXPECT_EQ(weights, 14) << way.name;  // seven to each of two layers
  }
}

}  // namespace
}  // namespace snug
