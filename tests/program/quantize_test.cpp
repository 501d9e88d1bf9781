// Quantized weights in bitsandbytes' formats: codes and scales counted by hand, and who is told of them.

#include "program/passes/quantize.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "program/adjoint.h"
#include "program/passes/lora.h"
#include "program/support_tiny.h"

namespace snug::testing {

namespace {

using Sizes = std::vector<int64_t>;

Program quantized(const Quantize& how, const ModelSpec& spec = tiny_decoder()) {
  Program program = tiny_forward(spec);
  add_lora(program, {.target_modules = {"q_proj", "v_proj"}});
  quantize_weights(program, how, DType::bf16);
  return program;
}

const Weight& weight_of(Program& program, const char* module) {
  return program.weights[static_cast<size_t>(linear_of(program, module).weight)];
}

// A scale for each 64 numbers: q 32 x 32 has 16, gate 80 x 32 has 40; with double quantization a scale of theirs for 256.
TEST(QuantizePass, in_4_bit_keeps_half_a_byte_a_number_and_a_scale_for_64) {
  for (const bool twice : {false, true}) {
    Program program = quantized({.in_4bit = true, .double_quant = twice});
    for (const auto& [module, numbers, scales] :
         {std::tuple{"q_proj", int64_t{1024}, int64_t{16}}, {"v_proj", 512, 8}, {"gate_proj", 2560, 40}}) {
      const Weight& weight = weight_of(program, module);
      ASSERT_TRUE(weight.quantization) << module;
      const Quantization& how = *weight.quantization;
      EXPECT_EQ(program.tensor(weight.tensor).bytes(), numbers / 2);
      EXPECT_EQ(how.block_size, 64);
      EXPECT_EQ(sizes_of(program, how.absmax), (Sizes{scales}));
      EXPECT_EQ(program.tensor(how.absmax).dtype, twice ? DType::u8 : DType::f32);
      EXPECT_EQ(how.nested_absmax != kNone, twice);
      if (!twice) continue;
      EXPECT_EQ(sizes_of(program, how.nested_absmax), (Sizes{1}));
      EXPECT_EQ(sizes_of(program, how.absmax_offset), (Sizes{1}));
    }
  }
}

TEST(QuantizePass, in_8_bit_keeps_a_byte_a_number_and_a_scale_for_each_row) {
  Program program = quantized({.in_8bit = true});
  const Weight& down = weight_of(program, "down_proj");
  ASSERT_TRUE(down.quantization);
  EXPECT_EQ(program.tensor(down.tensor).bytes(), 32 * 80);
  EXPECT_EQ(down.quantization->block_size, 80);
  EXPECT_EQ(sizes_of(program, down.quantization->absmax), (Sizes{32}));
}

TEST(QuantizePass, leaves_embedding_head_norms_and_adapters) {
  const Program program = quantized({.in_4bit = true});
  for (const Weight& weight : program.weights)
    EXPECT_EQ(weight.quantization.has_value(), weight.parameter.kind == ParameterKind::linear && !weight.adapter)
        << weight.parameter.name;
}

TEST(QuantizePass, tells_the_products_that_read_codes_and_no_others) {
  const Program program = quantized({.in_4bit = true, .compute = DType::f32});
  int64_t told = 0;
  for (const Op& op : ops_of_block(program)) {
    if (op.find(Slot::absmax) == kNone) {
      EXPECT_EQ(op.attributes.block_size, 0);
      continue;
    }
    ++told;
    EXPECT_EQ(op.kind, OpKind::matmul);
    EXPECT_EQ(op.attributes.block_size, 64);
    EXPECT_EQ(op.attributes.values, DType::f32);
  }
  EXPECT_EQ(told, 7);  // of 11 products
  EXPECT_EQ(count_of(ops_of_block(program), OpKind::matmul), 11);
}

TEST(QuantizePass, turns_weights_that_files_hold_by_input_features) {
  ModelSpec spec = tiny_decoder();
  spec.input_features_first = true;
  Program plain = tiny_forward(spec), program = quantized({.in_4bit = true}, spec);
  EXPECT_EQ(sizes_of(plain, weight_of(plain, "gate_proj").tensor), (Sizes{32, 80}));
  EXPECT_EQ(sizes_of(program, weight_of(program, "gate_proj").tensor), (Sizes{80, 32}));
  EXPECT_FALSE(op_with(plain, linear_of(plain, "gate_proj").product).attributes.transpose_b);
  EXPECT_TRUE(op_with(program, linear_of(program, "gate_proj").product).attributes.transpose_b);
}

TEST(QuantizePass, refuses_what_is_quantized_differentiated_or_read_by_nobody) {
  const Quantize how{.in_4bit = true};
  Program program = quantized(how);
  EXPECT_THROW(quantize_weights(program, how, DType::f32), std::logic_error);
  Program differentiated = tiny_forward();
  add_lora(differentiated, {.target_modules = {"q_proj"}});
  differentiate(differentiated);
  EXPECT_THROW(quantize_weights(differentiated, how, DType::f32), std::logic_error);
  Program without = tiny_forward();
  erase(find_op(without.root, linear_of(without, "o_proj").product));
  EXPECT_THROW(quantize_weights(without, how, DType::f32), std::logic_error);
}

}  // namespace

}  // namespace snug::testing
