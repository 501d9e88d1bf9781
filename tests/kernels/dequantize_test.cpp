// Quantized operands of products: their numbers are those of quantize/, and products see exactly these.

#include "kernels/cpu/dequantize.h"

#include "base/cpu_features.h"
#include "base/float16.h"
#include "kernels/cpu/pieces.h"
#include "kernels/cpu/product.h"
#include "kernels/op_reference.h"
#include "quantize/double_quantization.h"
#include "quantize/four_bit.h"
#include "quantize/int8_rows.h"
#include "targets/cpu/products.h"

namespace snug {
namespace {

using tests::GuardedWorkspace;
using tests::Values;

struct Format {
  DType type;
  bool nested;
  DType values;
};
constexpr Format kFormats[] = {{DType::nf4, true, DType::bf16},  {DType::nf4, false, DType::f32},
                               {DType::nf4, true, DType::f32},   {DType::fp4, true, DType::bf16},
                               {DType::fp4, false, DType::bf16}, {DType::i8, false, DType::bf16},
                               {DType::i8, false, DType::f32},   {DType::nf4, true, DType::f16}};

std::string describe(const Format& format) {
  return std::string(name_of(format.type)) + (format.nested ? " nested" : "") + " as " + std::string(name_of(format.values));
}

// A matrix quantized by quantize/, and its numbers as quantize/ gives them back.
struct Quantized {
  std::vector<uint8_t> codes, absmax_codes;
  std::vector<float> absmax, nested;
  float offset = 0;
  kernels::In in;
  std::vector<float> numbers;

  Quantized(const Format& format, int64_t rows, int64_t cols, uint64_t stream = 5) {
    const int64_t all = rows * cols;
    Values source(all, DType::f32, stream, 0.05F);
    for (int64_t i = 0; i < std::min<int64_t>(all, 64); ++i) source.set(i, 0.0F);  // a block of zeros
    const Values& read = source;
    const ::snug::Values values{{static_cast<const std::byte*>(read.in().data), static_cast<size_t>(all) * 4}};
    const int64_t block = format.type == DType::i8 ? cols : 64;
    const auto blocks = static_cast<size_t>((all + block - 1) / block);
    codes.resize(static_cast<size_t>(format.type == DType::i8 ? all : packed_bytes(all)));
    absmax.resize(blocks);
    numbers.resize(static_cast<size_t>(all));
    const ValuesOut out{std::as_writable_bytes(std::span(numbers))};
    if (format.type == DType::i8) {
      const std::span<int8_t> signed_codes(reinterpret_cast<int8_t*>(codes.data()), codes.size());
      quantize_int8_rows(values, cols, signed_codes, absmax);
      dequantize_int8_rows(signed_codes, cols, absmax, out);
    } else {
      const FourBitFormat four{format.type == DType::nf4 ? FourBit::nf4 : FourBit::fp4, block};
      quantize_4bit(four, values, codes, absmax);
      if (format.nested) nest();
      dequantize_4bit(four, codes, absmax, out);
    }
    round(format.values);
    in = {codes.data(), format.type, 0, {absmax.data(), nullptr, nullptr, block, format.values}};
    if (format.nested) in.scales = {absmax_codes.data(), nested.data(), &offset, block, format.values};
  }

  void nest() {
    absmax_codes.resize(absmax.size());
    nested.resize((absmax.size() + 255) / 256);
    offset = nested_offset(absmax);
    quantize_absmax(absmax, offset, absmax_codes, nested);
    dequantize_absmax(DynamicMap::of_signed().values(), kNestedBlockSize, absmax_codes, nested, offset, absmax);
  }
  void round(DType dtype) {
    for (float& number : numbers) {
      if (dtype == DType::bf16) number = bf16_to_f32(f32_to_bf16(number));
      if (dtype == DType::f16) number = f16_to_f32(f32_to_f16(number));
    }
  }
  // The same matrix without quantization.
  Values dense(DType dtype) const {
    Values values(static_cast<int64_t>(numbers.size()), dtype, 1);
    for (size_t i = 0; i < numbers.size(); ++i) values.set(static_cast<int64_t>(i), numbers[i]);
    return values;
  }
};

TEST(Dequantize, NumbersAreThoseOfTheFormatBitForBit) {
  for (const Format& format : kFormats)
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{7, 96}, {3, 73}, {300, 64}, {1, 5}}) {
      SCOPED_TRACE(describe(format) + " " + std::to_string(rows) + " x " + std::to_string(cols));
      const Quantized matrix(format, rows, cols);
      const auto all = static_cast<int64_t>(matrix.numbers.size());
      for (const auto& [begin, count] : {std::pair<int64_t, int64_t>{0, all},
                                         {1, all - 1},
                                         {all / 3, all / 2},
                                         {all - 1, 1},
                                         {std::min<int64_t>(63, all - 1), 1}}) {
        std::vector<float> out(static_cast<size_t>(count));
        kernels::dequantize(matrix.in, begin, count, out.data());
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(std::bit_cast<uint32_t>(out[static_cast<size_t>(i)]),
                    std::bit_cast<uint32_t>(matrix.numbers[static_cast<size_t>(begin + i)]))
              << begin + i;
      }
    }
}

TEST(Dequantize, PairsAreTheNumbersAsBf16) {
  for (const Format& format : kFormats) {
    const Quantized matrix(format, 6, 128);
    if (!kernels::has_pairs(matrix.in)) continue;
    SCOPED_TRACE(describe(format));
    const auto bits = [&](int64_t i) { return f32_to_bf16(matrix.numbers[static_cast<size_t>(i)]); };
    std::vector<uint32_t> words(128);
    for (const int64_t begin : {0, 32, 128, 640 + 96}) {
      const int64_t count = begin == 640 + 96 ? 32 : 128;
      kernels::dequantize_pairs(matrix.in, begin, count, words.data());
      for (int64_t i = 0; i < count / 2; ++i)
        ASSERT_EQ(words[static_cast<size_t>(i)], bits(begin + 2 * i) | static_cast<uint32_t>(bits(begin + 2 * i + 1)) << 16);
    }
    for (const int64_t col : {0, 32, 96}) {
      for (const int64_t rows : {2, 6}) {
        std::ranges::fill(words, 0xffffffffU);
        kernels::dequantize_row_pairs(kernels::MatrixView{matrix.in, 128, false, 6, 128}.part(0, col, 6, 32).data, 128, rows,
                                      words.data());
        for (int64_t i = 0; i < 32 * rows / 2; ++i) {
          const int64_t element = i / 32 * 2 * 128 + col + i % 32;
          ASSERT_EQ(words[static_cast<size_t>(i)], bits(element) | static_cast<uint32_t>(bits(element + 128)) << 16);
        }
        ASSERT_EQ(words[static_cast<size_t>(32 * rows / 2)], 0xffffffffU);
      }
    }
  }
}

struct Sizes {
  int64_t m, n, k;
};

// c of one product, its b quantized or dense.
Values product(const ProductShape& shape, const kernels::In& b, DType a_dtype) {
  constexpr int32_t kThreads = 2;
  const Values a(shape.m * shape.k, a_dtype, 3);
  Values c(shape.m * shape.n, shape.c, 4);
  const Blocks blocks = matmul_blocks(shape, kThreads);
  GuardedWorkspace workspace(matmul_workspace_bytes(shape, blocks, kThreads));
  const kernels::Matmul op{.a = a.in(),
                           .b = b,
                           .c = c.out(),
                           .m = shape.m,
                           .n = shape.n,
                           .k = shape.k,
                           .transpose_b = shape.transpose_b,
                           .accumulate = shape.accumulate,
                           .workspace = workspace.get(),
                           .cut = {.threads = kThreads,
                                   .rows = blocks.rows,
                                   .cols = blocks.cols,
                                   .depth = blocks.depth,
                                   .arithmetic = shape.arithmetic}};
  kernels::prepare(op, tests::products());
  kernels::matmul(op, tests::products());
  EXPECT_TRUE(workspace.intact() && c.guarded());
  return c;
}

// With a dense b that is copied just as the codes are, the bits are the same; an fp32 one is used in place.
TEST(Dequantize, ProductsWithCodesAreProductsWithTheirNumbers) {
  for (const Format& format : kFormats) {
    if (format.values == DType::f16) continue;
    for (const Sizes& sizes :
         {Sizes{40, 64, 128}, {5, 33, 65}, {130, 96, 192}, {64, 300, 73}, {3, 256, 2112}, {70, 2112, 64}})
      for (const bool transpose_b : {false, true})
        for (const DType a : {DType::f32, DType::bf16}) {
          ProductShape shape{.m = sizes.m,
                             .n = sizes.n,
                             .k = sizes.k,
                             .transpose_b = transpose_b,
                             .accumulate = sizes.m % 2 != 0,
                             .a = a,
                             .b = format.values,
                             .c = a,
                             .quantized = true};
          const Arithmetic best = multiplies_bf16() ? Arithmetic::bf16_pieces : Arithmetic::fp32;
          shape.arithmetic = product_arithmetic(shape, best);
          SCOPED_TRACE(describe(format) + " " + std::to_string(sizes.m) + " " + std::to_string(sizes.n) + " " +
                       std::to_string(sizes.k) + (transpose_b ? " b^T" : ""));
          const Quantized matrix(format, transpose_b ? sizes.n : sizes.k, transpose_b ? sizes.k : sizes.n);
          const Values with_codes = product(shape, matrix.in, a);
          const Values dense = matrix.dense(format.values);
          shape.quantized = false;
          const Values with_numbers = product(shape, dense.in(), a);
          if (format.values == DType::bf16 || in_bf16(shape.arithmetic)) {
            EXPECT_TRUE(with_codes.same_bits(with_numbers));
            continue;
          }
          for (int64_t i = 0; i < with_codes.size(); ++i)
            ASSERT_NEAR(with_codes[i], with_numbers[i], 1e-5 * std::sqrt(static_cast<double>(sizes.k))) << i;
        }
  }
}

}  // namespace
}  // namespace snug
