#include "formats/bnb_tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "formats/support_files.h"
#include "quantize/double_quantization.h"
#include "quantize/int8_rows.h"

namespace snug {
namespace {

const std::string kProjection = "model.layers.0.self_attn.k_proj.weight", kUp = "model.layers.0.mlp.up_proj.weight";

// What transformers saved (tests/oracle/make_quantize.py).
std::filesystem::path golden(const std::string& way) {
  return std::filesystem::path(SNUG_SOURCE_DIR) / "tests/golden/quantize" / ("checkpoint_" + way + ".safetensors");
}

template <class T>
std::vector<T> read(const Checkpoint& checkpoint, const TensorEntry& entry) {
  std::vector<T> elements(static_cast<size_t>(entry.bytes) / sizeof(T));
  checkpoint.read(entry, 0, std::as_writable_bytes(std::span(elements)));
  return elements;
}

// In the weight's dtype, as fp32.
std::vector<float> dequantized(const Checkpoint& checkpoint, const FourBitTensor& tensor) {
  std::vector<float> absmax(static_cast<size_t>(tensor.state.blocks()));
  read_absmax(checkpoint, tensor, 0, absmax);
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.state.elements() * size_of(tensor.state.dtype)));
  dequantize_4bit(tensor.state.format, read<uint8_t>(checkpoint, *tensor.codes), absmax, {bytes, tensor.state.dtype});
  std::vector<float> values(static_cast<size_t>(tensor.state.elements()));
  widen({bytes, tensor.state.dtype}, 0, values);
  return values;
}

std::vector<float> dequantized(const Checkpoint& checkpoint, const Int8Tensor& tensor) {
  std::vector<float> absmax(static_cast<size_t>(tensor.rows)), values(static_cast<size_t>(tensor.rows * tensor.columns));
  read_absmax(checkpoint, tensor, 0, absmax);
  dequantize_int8_rows(read<int8_t>(checkpoint, *tensor.codes), tensor.columns, absmax,
                       {std::as_writable_bytes(std::span(values))});
  return values;
}

TEST(BnbTensors, what_transformers_saved_stands_for_the_same_numbers) {
  for (const std::string way : {"nf4", "fp4", "int8"}) {
    const Checkpoint checkpoint(golden(way));
    for (const std::string& name : {kProjection, kUp}) {
      const auto expected = read<float>(checkpoint, checkpoint.at("expected." + name));
      const auto four_bit = find_four_bit(checkpoint, name);
      const auto int8 = find_int8(checkpoint, name);
      ASSERT_NE(four_bit.has_value(), int8.has_value());
      EXPECT_EQ(four_bit ? dequantized(checkpoint, *four_bit) : dequantized(checkpoint, *int8), expected)
          << way << " " << name;
    }
    EXPECT_FALSE(find_four_bit(checkpoint, "model.norm.weight"));
    EXPECT_FALSE(find_int8(checkpoint, "model.norm.weight"));
  }
}

TEST(BnbTensors, a_state_says_what_was_asked_for) {
  const Checkpoint nf4(golden("nf4")), fp4(golden("fp4"));
  const QuantState nested = find_four_bit(nf4, kUp)->state, flat = find_four_bit(fp4, kUp)->state;
  EXPECT_EQ(nested.format.type, FourBit::nf4);
  EXPECT_EQ(nested.format.block_size, 64);
  EXPECT_EQ(nested.dtype, DType::bf16);
  EXPECT_EQ(nested.shape, (std::vector<int64_t>{48, 32}));
  EXPECT_TRUE(nested.nested);
  EXPECT_EQ(flat.format.type, FourBit::fp4);
  EXPECT_EQ(flat.dtype, DType::f16);
  EXPECT_FALSE(flat.nested);
}

// All companions of every weight, as our own writer would have them.
TEST(BnbTensors, our_tensors_are_those_that_transformers_saved) {
  for (const std::string way : {"nf4", "fp4", "int8"}) {
    const Checkpoint checkpoint(golden(way));
    size_t companions = 0;
    for (const TensorEntry& entry : checkpoint.tensors())
      if (companion_of(entry.name) == kUp) ++companions;
    const auto four_bit = find_four_bit(checkpoint, kUp);
    const auto ours = four_bit ? four_bit_tensors(kUp, four_bit->state) : int8_tensors(kUp, 48, 32);
    EXPECT_EQ(ours.size(), companions + 1);
    for (const auto& [tensor, bytes] : ours) {
      const TensorEntry& theirs = checkpoint.at(tensor.name);
      EXPECT_EQ(theirs.dtype(), tensor.dtype) << tensor.name;
      if (tensor.name.find("quant_state") != std::string::npos) {  // ours is filled up with spaces
        std::string header(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        header.resize(header.find_last_not_of(' ') + 1);
        const auto expected = read<char>(checkpoint, theirs);
        EXPECT_EQ(header, std::string(expected.begin(), expected.end()));
      } else {
        EXPECT_EQ(theirs.shape, tensor.shape) << tensor.name;
        EXPECT_TRUE(bytes.empty() || read<std::byte>(checkpoint, theirs) == bytes) << tensor.name;
      }
    }
  }
}

// A checkpoint in memory that can be damaged, and written.
struct Damaged {
  std::map<std::string, TensorWithBytes> tensors;

  explicit Damaged(const std::string& way) {
    const Checkpoint checkpoint(golden(way));
    for (const TensorEntry& entry : checkpoint.tensors())
      tensors[entry.name] = {{entry.name, entry.dtype(), entry.shape}, read<std::byte>(checkpoint, entry)};
  }

  TensorWithBytes& operator[](const std::string& suffix) {
    const std::string scales = "model.layers.0.mlp.up_proj" + suffix;
    return tensors.at(tensors.contains(scales) ? scales : kUp + suffix);
  }

  void replace_state(const std::string& from, const std::string& to) {
    TensorWithBytes& state = (*this)[tensors.contains(kUp + ".nested_absmax") ? ".quant_state.bitsandbytes__nf4"
                                                                              : ".quant_state.bitsandbytes__fp4"];
    std::string header(reinterpret_cast<const char*>(state.bytes.data()), state.bytes.size());
    ASSERT_NE(header.find(from), std::string::npos) << header;
    header.replace(header.find(from), from.size(), to);
    state.bytes.assign(bytes_of(header).begin(), bytes_of(header).end());
    state.tensor.shape = {static_cast<int64_t>(header.size())};
  }

  void write(const std::filesystem::path& path) const {
    std::vector<TensorToWrite> list;
    for (const auto& [name, tensor] : tensors) list.push_back(tensor.tensor);
    SafetensorsWriter writer(path, list);
    for (const TensorEntry& entry : writer.order()) writer.write(tensors.at(entry.name).bytes);
    writer.finish();
  }

  // What reading the weight says.
  std::string refusal() const {
    const Scratch scratch;
    write(scratch / "m.safetensors");
    return refusal_of([&] {
      const Checkpoint checkpoint(scratch / "m.safetensors");
      if (const auto four_bit = find_four_bit(checkpoint, kUp)) dequantized(checkpoint, *four_bit);
      if (const auto int8 = find_int8(checkpoint, kUp)) dequantized(checkpoint, *int8);
    });
  }
};

void damage_float(TensorWithBytes& tensor, size_t index, float value) {
  std::memcpy(tensor.bytes.data() + index * sizeof value, &value, sizeof value);
}

TEST(BnbTensors, damaged_states_are_refused_by_file_tensor_and_field) {
  const auto refused = [](const char* from, const char* to) {
    Damaged file("nf4");
    file.replace_state(from, to);
    const std::string message = file.refusal();
    EXPECT_TRUE(says(message, "m.safetensors: " + kUp)) << message;
    return message;
  };
  EXPECT_TRUE(says(refused("\"nf4\"", "\"int3\""), "quant_type \"int3\" is not known (nf4 and fp4 are)"));
  EXPECT_TRUE(says(refused("\"nf4\"", "\"fp4\""), "quant_type fp4 in a tensor of that name"));
  EXPECT_TRUE(says(refused("64", "63"), "blocksize 63 is no power of two"));
  EXPECT_TRUE(says(refused("64", "128"), "24 elements, but " + kUp + " asks for 12"));
  EXPECT_TRUE(says(refused("64", "1e99"), "blocksize must be a whole number from 32 to 4096"));
  EXPECT_TRUE(says(refused("[48, 32]", "[48, 33]"), "768 bytes, but shape [48, 33] in 4 bits makes 792"));
  EXPECT_TRUE(says(refused("[48, 32]", "[-48, -32]"), "shape must be a whole number"));
  EXPECT_TRUE(says(refused("[48, 32]", "[4294967296, 4294967296]"), "shape is larger than any file can be"));
  EXPECT_TRUE(says(refused("[48, 32]", "null"), "shape must be"));
  EXPECT_TRUE(says(refused("bfloat16", "int64"), "dtype \"int64\" is not a weight's"));
  EXPECT_TRUE(says(refused("\"nested_offset\": ", "\"nested_offset\": NaN, \"x\": "), "not finite"));
  EXPECT_TRUE(says(refused("\"nested_offset\": ", "\"nested_offset\": 1e60, \"x\": "), "does not fit in float32"));
  EXPECT_TRUE(says(refused("\"nested_offset\"", "\"nested_offsets\""), "unknown field \"nested_offsets\""));
  EXPECT_TRUE(says(refused("\"nested_blocksize\": 256, ", ""), "has no nested_blocksize but nested_dtype"));
  EXPECT_TRUE(says(refused("\"blocksize\": 64, ", ""), "quant_state has no blocksize"));
  EXPECT_TRUE(says(refused("\"blocksize\": 64, ", "\"blocksize\": 64, \"blocksize\": 64, "), "stands there twice"));
  EXPECT_TRUE(says(refused("{", std::string(5000, '[').c_str()), "bytes of quant_state are too many"));
  EXPECT_TRUE(says(refused("{", "[{"), "not valid JSON"));
}

TEST(BnbTensors, damaged_companions_are_refused_by_file_and_tensor) {
  const auto refused = [](const char* way, auto damage) {
    Damaged file(way);
    damage(file);
    return file.refusal();
  };
  const auto without = [&](const char* way, const std::string& name) {
    return refused(way, [&](Damaged& file) { file.tensors.erase(name); });
  };
  EXPECT_EQ(refused("nf4", [](Damaged&) {}), "accepted");
  EXPECT_TRUE(says(without("nf4", kUp + ".absmax"), kUp + ".absmax is missing"));
  EXPECT_TRUE(says(without("fp4", kUp + ".quant_map"), kUp + ".quant_map is missing"));
  EXPECT_TRUE(says(without("nf4", kUp + ".nested_absmax"), kUp + ".nested_absmax is missing"));
  EXPECT_TRUE(says(without("nf4", kUp), "'" + kUp + "'"));
  EXPECT_TRUE(says(refused("fp4", [](Damaged& file) { file[".absmax"].tensor.dtype = DType::i32; }),
                   ".absmax: dtype is I32, but must be F32"));
  EXPECT_TRUE(says(refused("nf4", [](Damaged& file) { file[".absmax"] = Damaged("fp4")[".absmax"]; }), "must be U8"));
  EXPECT_TRUE(says(refused("nf4", [](Damaged& file) { damage_float(file[".quant_map"], 3, -0.4F); }), "code 3 stands for"));
  EXPECT_TRUE(
      says(refused("nf4", [](Damaged& file) { damage_float(file[".quant_map"], 3, NAN); }), "code 3 stands for nan"));
  EXPECT_TRUE(
      says(refused("nf4", [](Damaged& file) { damage_float(file[".nested_quant_map"], 9, INFINITY); }), "between -1"));
  EXPECT_TRUE(says(refused("nf4", [](Damaged& file) { damage_float(file[".nested_absmax"], 0, NAN); }), "not finite"));
  EXPECT_TRUE(
      says(refused("fp4", [](Damaged& file) { damage_float(file[".absmax"], 5, INFINITY); }), "scale 5 is not finite"));
  EXPECT_TRUE(says(refused("fp4",
                           [](Damaged& file) {
                             auto& other = file.tensors[kUp + ".quant_state.bitsandbytes__nf4"];
                             other = file[".quant_state.bitsandbytes__fp4"];
                             other.tensor.name = kUp + ".quant_state.bitsandbytes__nf4";
                           }),
                   "both nf4 and fp4"));

  EXPECT_TRUE(says(refused("int8", [](Damaged& file) { file[".weight"].tensor.dtype = DType::u8; }), "is U8 with 2"));
  EXPECT_TRUE(says(refused("int8", [](Damaged& file) { file[".weight"].tensor.shape = {32, 48}; }), "asks for 32"));
  EXPECT_TRUE(says(refused("int8", [](Damaged& file) { damage_float(file[".SCB"], 7, NAN); }), "scale 7 is not finite"));
  EXPECT_TRUE(says(refused("int8", [](Damaged& file) { damage_float(file[".SCB"], 7, -1); }), "negative"));
  EXPECT_TRUE(
      says(refused("int8", [](Damaged& file) { file[".weight_format"].bytes[0] = std::byte{2}; }), "weight_format 2"));
  EXPECT_EQ(refused("int8", [](Damaged& file) { file.tensors.erase("model.layers.0.mlp.up_proj.weight_format"); }),
            "accepted");
}

TEST(BnbTensors, packed_codes_may_be_stored_as_any_dtype) {
  Damaged file("nf4");
  file[""].tensor.dtype = DType::bf16;  // bnb_4bit_quant_storage
  file[""].tensor.shape = {384, 1};
  EXPECT_EQ(file.refusal(), "accepted");
}

TEST(BnbTensors, scales_are_read_in_parts) {
  // 700 blocks under three nested ones.
  QuantState state{.format = {FourBit::nf4, 32}, .shape = {700, 32}, .nested = true, .nested_offset = 0.5F};
  std::vector<float> absmax(700), nested(3), all(700), back(700);
  for (size_t i = 0; i < absmax.size(); ++i) absmax[i] = 0.5F + 0.4F * std::sin(static_cast<float>(i));
  std::vector<uint8_t> codes(700), weight(700 * 16);
  quantize_absmax(absmax, state.nested_offset, codes, nested);
  auto tensors = four_bit_tensors("w", state);
  std::map<std::string, std::span<const std::byte>> parts = {{"w", std::as_bytes(std::span(weight))},
                                                             {"w.absmax", std::as_bytes(std::span(codes))},
                                                             {"w.nested_absmax", std::as_bytes(std::span(nested))}};
  std::vector<TensorToWrite> list;
  for (const auto& [tensor, bytes] : tensors) {
    list.push_back(tensor);
    if (!bytes.empty()) parts[tensor.name] = bytes;
  }
  const Scratch scratch;
  SafetensorsWriter writer(scratch / "w.safetensors", list);
  for (const TensorEntry& entry : writer.order()) writer.write(parts.at(entry.name));
  writer.finish();

  const Checkpoint checkpoint(scratch / "w.safetensors");
  const auto tensor = find_four_bit(checkpoint, "w");
  ASSERT_TRUE(tensor);
  dequantize_absmax(DynamicMap::of_signed().values(), 256, codes, nested, 0.5F, all);
  for (const size_t step : {700UL, 256UL, 100UL, 1UL}) {
    for (size_t begin = 0; begin < back.size(); begin += step)
      read_absmax(checkpoint, *tensor, static_cast<int64_t>(begin),
                  std::span(back).subspan(begin, std::min(step, back.size() - begin)));
    EXPECT_EQ(back, all) << step;
  }
  EXPECT_THROW(read_absmax(checkpoint, *tensor, 1, back), Error);
}

TEST(BnbTensors, the_length_of_a_state_does_not_depend_on_its_offset) {
  QuantState state{.shape = {3, 5}, .nested = true};
  const size_t length = format_quant_state(state).size();
  for (const float offset : {1.0F, -1.17549435e-38F, 0.1F, 3.4028235e38F, 1e-45F, 12345.678F}) {
    state.nested_offset = offset;
    const std::string header = format_quant_state(state);
    EXPECT_EQ(header.size(), length) << header;
    EXPECT_EQ(parse_quant_state(header, "").nested_offset, offset) << header;
  }
}

TEST(BnbTensors, companions_name_their_weight) {
  EXPECT_EQ(companion_of("a.weight.absmax"), "a.weight");
  EXPECT_EQ(companion_of("a.weight.nested_absmax"), "a.weight");
  EXPECT_EQ(companion_of("a.weight.quant_map"), "a.weight");
  EXPECT_EQ(companion_of("a.weight.nested_quant_map"), "a.weight");
  EXPECT_EQ(companion_of("a.weight.quant_state.bitsandbytes__fp4"), "a.weight");
  EXPECT_EQ(companion_of("a.SCB"), "a.weight");
  EXPECT_EQ(companion_of("a.weight_format"), "a.weight");
  EXPECT_EQ(companion_of("a.weight"), "");
  EXPECT_EQ(companion_of(".absmax"), "");
  EXPECT_THROW(int8_tensors("a.bias", 2, 2), Error);
}

}  // namespace
}  // namespace snug
