#include "run/quantized_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/dynamic_map.h"
#include "base/error.h"
#include "formats/bnb_tensors.h"
#include "formats/quantize_pieces.h"
#include "quantize/double_quantization.h"
#include "quantize/four_bit.h"

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

class QuantizedLoader {
 public:
  QuantizedLoader(const Checkpoint& checkpoint, const TensorEntry& entry, const QuantizedMatrix& out, const LoadRoom& room)
      : checkpoint_(checkpoint),
        entry_(entry),
        out_(out),
        room_(room),
        where_(checkpoint.path().string() + ": " + entry.name) {}

  void load(bool turned) {
    if (const auto four_bit = find_four_bit(checkpoint_, entry_.name)) return take(*four_bit);
    if (const auto int8 = find_int8(checkpoint_, entry_.name)) return take(*int8);
    quantize(turned);
    finish_scales();
  }

 private:
  [[noreturn]] void refuse_shape() const {
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

  void quantize(bool turned) const {
    const MatrixFormat format{out_.type, out_.rows, out_.columns, out_.block_size};
    read_pieces_of(checkpoint_, entry_, turned, format, room_.staging, [&](int64_t begin, std::span<const std::byte> piece) {
      const Values values{piece, entry_.dtype(), begin, where_};
      const int64_t count = values.count();
      quantize_piece(
          format, values,
          out_.codes.subspan(static_cast<size_t>(format.code_bytes(begin)), static_cast<size_t>(format.code_bytes(count))),
          scales().subspan(static_cast<size_t>(begin / format.block_size),
                           static_cast<size_t>(block_count(count, format.block_size))));
    });
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
    if (state.shape != std::vector<int64_t>{out_.rows, out_.columns}) refuse_shape();
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
    if (tensor.rows != out_.rows || tensor.columns != out_.columns) refuse_shape();
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
  QuantizedLoader(checkpoint, entry, out, room).load(turned);
}

}  // namespace snug
