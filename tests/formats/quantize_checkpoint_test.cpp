// Checkpoints that are quantized as a whole, against files that transformers quantized and saved (tests/golden/qlora_*). For
// transformers reading ours: tests/oracle/check_quantized.py.

#include "formats/quantize_checkpoint.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "formats/bnb_tensors.h"
#include "formats/support_files.h"
#include "quantize/int8_rows.h"

namespace snug {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kModels = SNUG_SOURCE_DIR "/tests/golden";

std::vector<std::byte> read_bytes(const Checkpoint& file, const TensorEntry& entry) {
  std::vector<std::byte> bytes(static_cast<size_t>(entry.bytes));
  file.read(entry, 0, bytes);
  return bytes;
}

template <class T>
std::vector<T> elements_of(const Checkpoint& file, const std::string& name) {
  const std::vector<std::byte> bytes = read_bytes(file, file.at(name));
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<std::byte> as_bytes(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

std::vector<float> dequantized_tensor(const Checkpoint& file, const FourBitTensor& tensor) {
  const std::vector<std::byte> codes = read_bytes(file, *tensor.codes);
  std::vector<float> absmax(static_cast<size_t>(tensor.state.blocks()));
  std::vector<float> values(static_cast<size_t>(tensor.state.elements()));
  read_absmax(file, tensor, 0, absmax);
  dequantize_4bit(tensor.state.format, {reinterpret_cast<const uint8_t*>(codes.data()), codes.size()}, absmax,
                  {std::as_writable_bytes(std::span(values)), DType::f32});
  return values;
}

struct Floats {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

void write_floats(const fs::path& path, const std::map<std::string, Floats>& tensors) {
  std::vector<TensorToWrite> list;
  for (const auto& [name, tensor] : tensors) list.push_back({name, DType::f32, tensor.shape});
  SafetensorsWriter writer(path, list);
  for (const TensorEntry& entry : writer.order()) writer.write(as_bytes(tensors.at(entry.name).values));
  writer.finish();
}

// What the model's linears were dequantized to, as an unquantized checkpoint; turned, as GPT-2's files have them.
void write_dequantized(const fs::path& from, const fs::path& to, bool turned) {
  fs::create_directories(to);
  json config = json::parse(contents(from / "config.json"));
  config.erase("quantization_config");
  put(to / "config.json", config.dump(2));
  put(to / "tokenizer.json", "{}");
  const Checkpoint file(from);
  std::map<std::string, Floats> tensors;
  for (const TensorEntry& entry : file.tensors()) {
    if (!companion_of(entry.name).empty()) continue;
    const auto four_bit = find_four_bit(file, entry.name);
    if (!four_bit) {
      tensors[entry.name] = {entry.shape, elements_of<float>(file, entry.name)};
      continue;
    }
    const std::vector<float> values = dequantized_tensor(file, *four_bit);
    const auto rows = static_cast<size_t>(four_bit->state.shape[0]), columns = static_cast<size_t>(four_bit->state.shape[1]);
    Floats& out = tensors[entry.name] = {four_bit->state.shape, values};
    if (!turned) continue;
    std::swap(out.shape[0], out.shape[1]);
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c) out.values[c * rows + r] = values[r * columns + c];
  }
  write_floats(to / "model.safetensors", tensors);
}

class Saved : public ::testing::TestWithParam<const char*> {};

TEST_P(Saved, FilesHaveTheTensorsAndTheConfigThatTransformersSaves) {
  const Scratch scratch;
  const fs::path golden = kModels / GetParam();
  write_dequantized(golden, scratch / "numbers", std::string(GetParam()) == "qlora_gpt2");
  const QuantizeSummary summary = quantize_checkpoint({.model = scratch / "numbers", .output = scratch / "out"});
  EXPECT_EQ(summary.files, 1);
  EXPECT_TRUE(fs::exists(scratch / "out/tokenizer.json"));
  EXPECT_EQ(json::parse(contents(scratch / "out/config.json")), json::parse(contents(golden / "config.json")));
  const Checkpoint ours(scratch / "out"), theirs(golden);
  EXPECT_EQ(ours.tensors().size(), theirs.tensors().size());
  int64_t quantized = 0;
  for (const TensorEntry& entry : theirs.tensors()) {
    const TensorEntry& our = ours.at(entry.name);
    EXPECT_EQ(our.stored->name, entry.stored->name) << entry.name;
    const bool state = entry.name.find(".quant_state.") != std::string::npos;  // of another length: offsets have digits
    if (!state) {
      EXPECT_EQ(our.shape, entry.shape) << entry.name;
    }
    const auto four_bit = find_four_bit(theirs, entry.name), mine = find_four_bit(ours, entry.name);
    ASSERT_EQ(four_bit.has_value(), mine.has_value());
    if (four_bit) {
      EXPECT_EQ(mine->state.shape, four_bit->state.shape);
      EXPECT_EQ(mine->state.dtype, four_bit->state.dtype);
      EXPECT_EQ(mine->state.format.block_size, four_bit->state.format.block_size);
      EXPECT_EQ(mine->state.nested_block_size, four_bit->state.nested_block_size);
      EXPECT_NEAR(mine->state.nested_offset, four_bit->state.nested_offset, 1e-3F * four_bit->state.nested_offset);
      ++quantized;
    }
    // Codes stand for what they were made of, so that quantizing it gives them again; scales come from a coarse table.
    if (four_bit || companion_of(entry.name).empty() || entry.name.ends_with("_map")) {
      EXPECT_EQ(read_bytes(ours, our), read_bytes(theirs, entry)) << entry.name;
    }
  }
  EXPECT_EQ(summary.quantized, quantized);
  EXPECT_GT(quantized, 0);
}

INSTANTIATE_TEST_SUITE_P(Golden, Saved,
                         ::testing::Values("qlora_llama", "qlora_qwen2", "qlora_gemma3", "qlora_phi3", "qlora_gpt2",
                                           "qlora_mixtral", "qlora_qwen3_moe"));

TEST(QuantizeCheckpoint, ShardsHoldTheSameBytesAndAnIndex) {
  const Scratch scratch;
  const fs::path model = kModels / "qlora_online";
  quantize_checkpoint({.model = model, .output = scratch / "one"});
  const QuantizeSummary summary = quantize_checkpoint({.model = model, .output = scratch / "many", .shard_bytes = 5000});
  EXPECT_GT(summary.files, 3);
  EXPECT_TRUE(fs::exists(scratch / "many/model.safetensors.index.json"));
  const Checkpoint one(scratch / "one"), many(scratch / "many");
  ASSERT_EQ(one.tensors().size(), many.tensors().size());
  for (const TensorEntry& entry : one.tensors())
    EXPECT_EQ(read_bytes(one, entry), read_bytes(many, many.at(entry.name))) << entry.name;
  EXPECT_EQ(many.data_bytes(), summary.bytes);
}

TEST(QuantizeCheckpoint, Fp4AndInt8AreThoseOfTheQuantizers) {
  const Scratch scratch;
  const fs::path model = kModels / "untied";
  quantize_checkpoint({.model = model, .output = scratch / "fp4", .type = DType::fp4, .double_quant = false});
  quantize_checkpoint({.model = model, .output = scratch / "int8", .type = DType::i8});
  const Checkpoint numbers(model), fp4(scratch / "fp4"), int8(scratch / "int8");
  int64_t linears = 0;
  for (const TensorEntry& entry : numbers.tensors()) {
    const std::vector<std::byte> bytes = read_bytes(numbers, entry);
    if (entry.name.find("_proj") == std::string::npos) {
      EXPECT_EQ(read_bytes(fp4, fp4.at(entry.name)), bytes);
      EXPECT_EQ(read_bytes(int8, int8.at(entry.name)), bytes);
      continue;
    }
    ++linears;
    const Values values{bytes, entry.dtype(), 0, entry.name};
    std::vector<uint8_t> codes(static_cast<size_t>(packed_bytes(values.count())));
    std::vector<float> absmax(static_cast<size_t>(block_count(values.count(), 64)));
    quantize_4bit({FourBit::fp4, 64}, values, codes, absmax);
    EXPECT_EQ(elements_of<uint8_t>(fp4, entry.name), codes);
    EXPECT_EQ(elements_of<float>(fp4, entry.name + ".absmax"), absmax);
    std::vector<int8_t> rows(static_cast<size_t>(values.count()));
    std::vector<float> scales(static_cast<size_t>(entry.shape[0]));
    quantize_int8_rows(values, entry.shape[1], rows, scales);
    EXPECT_EQ(elements_of<int8_t>(int8, entry.name), rows);
    const std::string stem = entry.name.substr(0, entry.name.size() - std::string("weight").size());
    EXPECT_EQ(elements_of<float>(int8, stem + "SCB"), scales);
  }
  EXPECT_EQ(linears, 14);
  const json config = json::parse(contents(scratch / "int8/config.json"))["quantization_config"];
  EXPECT_EQ(config["load_in_8bit"], true);
  EXPECT_EQ(config["load_in_4bit"], false);
}

// tests/golden/qlora_online with one tensor changed.
fs::path changed_model(const fs::path& to, const std::function<void(std::map<std::string, Floats>&)>& change) {
  const fs::path from = kModels / "qlora_online";
  fs::create_directories(to);
  fs::copy(from / "config.json", to / "config.json");
  const Checkpoint file(from);
  std::map<std::string, Floats> tensors;
  for (const TensorEntry& entry : file.tensors()) tensors[entry.name] = {entry.shape, elements_of<float>(file, entry.name)};
  change(tensors);
  write_floats(to / "model.safetensors", tensors);
  return to;
}

constexpr const char* kQuery = "model.layers.0.self_attn.q_proj.weight";

std::string refused(const fs::path& model, const fs::path& output) {
  const std::string message = refusal_of([&] { quantize_checkpoint({.model = model, .output = output}); });
  EXPECT_FALSE(fs::exists(output)) << message;
  return message;
}

TEST(QuantizeCheckpoint, WeightsThatCannotBeQuantizedAreRefusedByName) {
  const Scratch scratch;
  const fs::path out = scratch / "out";
  EXPECT_TRUE(says(refused(kModels / "qlora_llama", out), "quantized already"));
  fs::path model = changed_model(scratch / "config lost", [](auto&) {});
  fs::copy(kModels / "qlora_llama/model.safetensors", model / "model.safetensors", fs::copy_options::overwrite_existing);
  EXPECT_TRUE(says(refused(model, out), "quantized already"));
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    model = changed_model(scratch / fmt::format("bad {}", bad), [&](auto& tensors) { tensors[kQuery].values[70] = bad; });
    const std::string message = refused(model, out);
    EXPECT_TRUE(says(message, (model / "model.safetensors").string() + ": " + kQuery));
    EXPECT_TRUE(says(message, "70"));
  }
  model = changed_model(scratch / "missing", [](auto& tensors) { tensors.erase(kQuery); });
  EXPECT_TRUE(says(refused(model, out), kQuery));
  model = changed_model(scratch / "stray", [](auto& tensors) { tensors["stray.weight"] = tensors[kQuery]; });
  EXPECT_TRUE(says(refused(model, out), "stray.weight"));
  model = changed_model(scratch / "turned", [](auto& tensors) {
    std::swap(tensors[kQuery].shape[0], tensors[kQuery].shape[1]);
    tensors[kQuery].shape = {32, 128};
  });
  EXPECT_TRUE(says(refused(model, out), "another shape"));
  EXPECT_TRUE(says(refused(scratch / "nowhere", out), "config.json"));
}

TEST(QuantizeCheckpoint, OnlyAModelIsReplacedAndOnlyWhenAsked) {
  const Scratch scratch;
  const fs::path model = changed_model(scratch / "a/model", [](auto&) {}), out = scratch / "out";
  const auto outcome = [&](const fs::path& output, bool overwrite) {
    return refusal_of([&] { quantize_checkpoint({.model = model, .output = output, .overwrite = overwrite}); });
  };
  fs::create_directories(out);
  put(out / "letter.txt", "dear");
  EXPECT_TRUE(says(outcome(out, false), "is not empty"));
  EXPECT_TRUE(says(outcome(out, true), "not a model"));
  EXPECT_EQ(contents(out / "letter.txt"), "dear");
  EXPECT_TRUE(says(outcome(model, true), "holds what is to be quantized"));
  EXPECT_TRUE(says(outcome(scratch / "a", true), "holds what is to be quantized"));
  fs::remove(out / "letter.txt");
  EXPECT_EQ(outcome(out, false), "accepted");
  EXPECT_TRUE(says(outcome(out, false), "is not empty"));
  EXPECT_EQ(outcome(out, true), "accepted");
}

}  // namespace
}  // namespace snug
