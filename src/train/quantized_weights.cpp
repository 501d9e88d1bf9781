#include "train/quantized_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "base/dynamic_map.h"
#include "base/error.h"
#include "formats/bnb_tensors.h"
#include "quantize/double_quantization.h"
#include "quantize/four_bit.h"
#include "quantize/int8_rows.h"

namespace snug {

namespace {

constexpr int64_t kReadAtOnce = int64_t{4} << 20;  // bytes, as much as the page cache is to hold of a file

template <class T>
std::span<T> as(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

FourBitFormat format_of(const QuantizedMatrix& matrix) {
  return {matrix.type == DType::nf4 ? FourBit::nf4 : FourBit::fp4, matrix.block_size};
}

class Loader {
 public:
  Loader(const Checkpoint& checkpoint, const TensorEntry& entry, const QuantizedMatrix& out, const LoadRoom& room)
      : checkpoint_(checkpoint),
        entry_(entry),
        out_(out),
        room_(room),
        where_(checkpoint.path().string() + ": " + entry.name) {}

  void load(bool turned) {
    if (const auto four_bit = find_four_bit(checkpoint_, entry_.name)) return take(*four_bit);
    if (const auto int8 = find_int8(checkpoint_, entry_.name)) return take(*int8);
    const DType from = entry_.dtype();
    if (from != DType::f32 && from != DType::bf16 && from != DType::f16)
      throw Error("tensor '" + entry_.name + "' is " + std::string(name_of(from)), checkpoint_.path().string(),
                  "weights must be F32, F16 or BF16");
    require_shape(turned ? std::vector{out_.columns, out_.rows} : std::vector{out_.rows, out_.columns});
    turned ? quantize_turned() : quantize_all();
    finish_scales();
  }

 private:
  void require_shape(const std::vector<int64_t>& shape) const {
    if (entry_.shape != shape)
      throw Error("tensor '" + entry_.name + "' has another shape than the model's configuration says",
                  checkpoint_.path().string(), "use the config.json that belongs to these weights");
  }

  // Where fp32 scales are put before they are quantized, if they are.
  std::span<float> scales() const {
    if (!out_.nested()) return as<float>(out_.absmax);
    return room_.absmax.first(out_.absmax.size());
  }

  void finish_scales() const {
    if (!out_.nested()) return;
    *out_.offset = nested_offset(scales());
    quantize_absmax(scales(), *out_.offset, as<uint8_t>(out_.absmax), out_.nested_absmax);
  }

  // ---- From numbers

  // Elements whose codes and scales are whole: pieces end there.
  int64_t grain() const { return out_.block_size % 2 == 0 ? out_.block_size : 2 * out_.block_size; }

  void quantize_all() const {
    const int64_t all = out_.rows * out_.columns;
    const int64_t size = size_of(entry_.dtype());
    const int64_t room = std::min<int64_t>(kReadAtOnce, static_cast<int64_t>(room_.staging.size())) / size;
    const int64_t most = std::max(grain(), room / grain() * grain());
    for (int64_t begin = 0, count = 0; begin < all; begin += count) {
      count = std::min(most, all - begin);
      const std::span<std::byte> piece = room_.staging.first(static_cast<size_t>(count * size));
      checkpoint_.read(entry_, begin * size, piece);
      checkpoint_.drop_behind(entry_, begin * size, count * size);
      quantize(piece, begin);
    }
  }

  // Some rows at a time, gathered from the columns that the file holds.
  void quantize_turned() const {
    const int64_t size = size_of(entry_.dtype());
    const auto half = static_cast<int64_t>(room_.staging.size()) / 2;
    const int64_t step = out_.columns % grain() == 0 ? 1 : grain();
    const int64_t most = std::max(step, half / (out_.columns * size) / step * step);
    for (int64_t row = 0, rows = 0; row < out_.rows; row += rows) {
      rows = std::min(most, out_.rows - row);
      const auto bytes = static_cast<size_t>(rows * out_.columns * size);
      const std::span<std::byte> columns = room_.staging.first(bytes), turned = room_.staging.subspan(bytes, bytes);
      for (int64_t c = 0; c < out_.columns; ++c)
        checkpoint_.read(entry_, (c * out_.rows + row) * size,
                         columns.subspan(static_cast<size_t>(c * rows * size), static_cast<size_t>(rows * size)));
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < out_.columns; ++c)
          std::memcpy(turned.data() + (r * out_.columns + c) * size, columns.data() + (c * rows + r) * size,
                      static_cast<size_t>(size));
      quantize(turned, row * out_.columns);
    }
    checkpoint_.drop_behind(entry_, 0, entry_.bytes);
  }

  // Elements from `begin` on, shared out over threads.
  void quantize(std::span<const std::byte> piece, int64_t begin) const {
    constexpr int64_t kGrains = 512;
    const int64_t size = size_of(entry_.dtype());
    const int64_t count = static_cast<int64_t>(piece.size()) / size;
    const int64_t step = kGrains * grain();
    std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic)
    for (int64_t at = 0; at < count; at += step) {
      try {
        const int64_t part = std::min(step, count - at);
        quantize_part({piece.subspan(static_cast<size_t>(at * size), static_cast<size_t>(part * size)), entry_.dtype(),
                       begin + at, where_},
                      begin + at, part);
      } catch (...) {
#pragma omp critical
        failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
  }

  void quantize_part(const Values& values, int64_t begin, int64_t count) const {
    const auto blocks = static_cast<size_t>(block_count(count, out_.block_size));
    const auto absmax = scales().subspan(static_cast<size_t>(begin / out_.block_size), blocks);
    if (out_.type == DType::i8)
      return quantize_int8_rows(values, out_.columns,
                                as<int8_t>(out_.codes).subspan(static_cast<size_t>(begin), static_cast<size_t>(count)),
                                absmax);
    const auto codes =
        as<uint8_t>(out_.codes).subspan(static_cast<size_t>(begin / 2), static_cast<size_t>(packed_bytes(count)));
    quantize_4bit(format_of(out_), values, codes, absmax);
  }

  // ---- From codes

  [[noreturn]] void refuse_codes(const std::string& theirs) const {
    throw Error(
        fmt::format("tensor '{}' is quantized to {}, the recipe asks for {}", entry_.name, theirs, name_of(out_.type)),
        checkpoint_.path().string(), "ask for what it is, or give the model that it was made from");
  }

  void read_codes(const TensorEntry& codes) const {
    for (int64_t begin = 0, count = 0; begin < codes.bytes; begin += count) {
      count = std::min(kReadAtOnce, codes.bytes - begin);
      checkpoint_.read(codes, begin, out_.codes.subspan(static_cast<size_t>(begin), static_cast<size_t>(count)));
      checkpoint_.drop_behind(codes, begin, count);
    }
  }

  void take(const FourBitTensor& tensor) const {
    const QuantState& state = tensor.state;
    if (out_.type == DType::i8 || state.format.type != format_of(out_).type)
      refuse_codes(std::string(name_of(state.format.type)));
    if (state.format.block_size != out_.block_size)
      throw Error(fmt::format("tensor '{}' has blocks of {}", entry_.name, state.format.block_size),
                  checkpoint_.path().string(), fmt::format("only blocks of {} can be trained on", out_.block_size));
    if (state.shape != std::vector<int64_t>{out_.rows, out_.columns}) require_shape({});
    read_codes(*tensor.codes);
    if (out_.nested() && is_alike(tensor)) return take_nested(tensor);
    read_absmax(checkpoint_, tensor, 0, scales());
    finish_scales();
  }

  // Whether its nested scales are as ours.
  static bool is_alike(const FourBitTensor& tensor) {
    return tensor.state.nested && tensor.state.nested_block_size == kNestedBlockSize &&
           std::ranges::equal(tensor.nested_map, DynamicMap::of_signed().values());
  }

  void take_nested(const FourBitTensor& tensor) const {
    read_absmax(checkpoint_, tensor, 0, scales());  // for its checks
    checkpoint_.read(*tensor.absmax, 0, out_.absmax);
    checkpoint_.read(*tensor.nested_absmax, 0, std::as_writable_bytes(out_.nested_absmax));
    *out_.offset = tensor.state.nested_offset;
  }

  void take(const Int8Tensor& tensor) const {
    if (out_.type != DType::i8) refuse_codes("int8");
    if (tensor.rows != out_.rows || tensor.columns != out_.columns) require_shape({});
    read_codes(*tensor.codes);
    read_absmax(checkpoint_, tensor, 0, scales());
  }

  const Checkpoint& checkpoint_;
  const TensorEntry& entry_;
  const QuantizedMatrix& out_;
  const LoadRoom& room_;
  std::string where_;
};

}  // namespace

void load_quantized(const Checkpoint& checkpoint, const TensorEntry& entry, bool turned, const QuantizedMatrix& out,
                    const LoadRoom& room) {
  Loader(checkpoint, entry, out, room).load(turned);
}

}  // namespace snug
