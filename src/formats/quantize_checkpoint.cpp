#include "formats/quantize_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "formats/atomic_directory.h"
#include "formats/bnb_tensors.h"
#include "formats/model_directory.h"
#include "formats/model_tensors.h"
#include "formats/quantize_pieces.h"
#include "model/config.h"
#include "model/families.h"
#include "model/parameters.h"
#include "quantize/double_quantization.h"

namespace snug {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr int64_t kCopiedAtOnce = int64_t{4} << 20;  // bytes
constexpr int64_t kBlockSize = 64;                   // bitsandbytes' default, which transformers leaves as it is

// A linear of the model.
struct Matrix {
  MatrixFormat format;
  bool turned = false;  // files hold it as [columns, rows]
  QuantState state;     // of 4-bit types
};

// A tensor of the model, and those that it becomes.
struct Item {
  const TensorEntry* entry = nullptr;
  std::optional<Matrix> matrix;  // none: it stays as it is
  std::vector<TensorWithBytes> tensors;

  int64_t bytes() const {
    int64_t sum = 0;
    for (const TensorWithBytes& one : tensors) {
      int64_t bytes = size_of(one.tensor.dtype);
      for (const int64_t extent : one.tensor.shape) bytes *= extent;
      sum += bytes;
    }
    return sum;
  }
};

// ---- What becomes of each tensor

Item as_it_is(const TensorEntry& entry) { return {&entry, std::nullopt, {{{entry.name, entry.dtype(), entry.shape}, {}}}}; }

Item quantized(const TensorEntry& entry, const Parameter& parameter, const QuantizeRequest& request) {
  Matrix matrix{.format = {request.type, parameter.output_features(), parameter.input_features(), kBlockSize},
                .turned = parameter.input_features_first};
  MatrixFormat& format = matrix.format;
  if (request.type == DType::i8) {
    format.block_size = format.columns;
    return {&entry, matrix, int8_tensors(entry.name, format.rows, format.columns)};
  }
  matrix.state = {.format = {request.type == DType::nf4 ? FourBit::nf4 : FourBit::fp4, kBlockSize},
                  .dtype = entry.dtype(),
                  .shape = {format.rows, format.columns},
                  .nested = request.double_quant,
                  .nested_block_size = kNestedBlockSize};
  return {&entry, matrix, four_bit_tensors(entry.name, matrix.state)};
}

class Items {
 public:
  Items(const QuantizeRequest& request, const ModelSpec& spec, const TensorSource& source)
      : request_(request), spec_(spec), source_(source) {}

  // In the order of the checkpoint's files. Throws Error.
  std::vector<Item> make() {
    for (const Parameter& parameter : parameters_of(spec_))
      for (int64_t layer = parameter.first_layer; layer < parameter.end_layer(spec_.layers); ++layer)
        for (int64_t expert = 0; expert < std::max<int64_t>(1, parameter.experts); ++expert) add(parameter, layer, expert);
    for (const TensorEntry& entry : source_.tensors()) add_rest(entry);
    std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
      return std::pair(a.entry->file, a.entry->offset) < std::pair(b.entry->file, b.entry->offset);
    });
    return std::move(items_);
  }

 private:
  void add(const Parameter& parameter, int64_t layer, int64_t expert) {
    const TensorEntry& entry = find_tensor(spec_, source_, parameter.instance(layer, expert));
    std::vector<int64_t> shape = parameter.shape;
    if (parameter.experts > 0) shape.erase(shape.begin());
    if (entry.shape != shape)
      throw Error("the tensor has another shape than the model's configuration says", source_.label_of(entry),
                  "use the config.json that belongs to these weights");
    const DType dtype = entry.dtype();
    if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16)
      throw Error(fmt::format("the tensor is {}", entry.stored->name), source_.label_of(entry),
                  "weights must be F32, F16 or BF16");
    used_.insert(entry.name);
    items_.push_back(parameter.kind == ParameterKind::linear ? quantized(entry, parameter, request_) : as_it_is(entry));
  }

  // Vision towers go along; a copy of a tied head and tables that are computed do not, as transformers saves none.
  void add_rest(const TensorEntry& entry) {
    if (used_.contains(entry.name)) return;
    if (is_in_tower(spec_, entry.name)) {
      items_.push_back(as_it_is(entry));
      return;
    }
    const bool tied = spec_.tied_embeddings && entry.name.ends_with("lm_head.weight");
    if (!tied && !is_beside_the_model(spec_, entry.name))
      throw Error("the tensor has no place in this model", source_.label_of(entry),
                  "check that config.json belongs to these weights");
  }

  const QuantizeRequest& request_;
  const ModelSpec& spec_;
  const TensorSource& source_;
  std::set<std::string> used_;
  std::vector<Item> items_;
};

// ---- Writing

class ShardWriter {
 public:
  ShardWriter(const TensorSource& source, const fs::path& path, std::span<const Item> items)
      : source_(source), writer_(path, tensors_of(items)) {
    for (const TensorEntry& entry : writer_.order()) places_[entry.name] = &entry;
  }

  void write(const Item& item) { item.matrix ? write_matrix(item, *item.matrix) : copy(item); }
  void close() { writer_.close(); }

 private:
  static std::vector<TensorToWrite> tensors_of(std::span<const Item> items) {
    std::vector<TensorToWrite> list;
    for (const Item& item : items)
      for (const TensorWithBytes& one : item.tensors) list.push_back(one.tensor);
    return list;
  }

  void put(const std::string& name, int64_t begin, std::span<const std::byte> bytes) {
    writer_.write_at(*places_.at(name), begin, bytes);
  }

  // At least so many bytes of staging.
  std::span<std::byte> staging(int64_t bytes) {
    if (staging_.size() < static_cast<size_t>(bytes)) staging_.resize(static_cast<size_t>(bytes));
    return staging_;
  }

  void copy(const Item& item) {
    const TensorEntry& entry = *item.entry;
    for (int64_t begin = 0, count = 0; begin < entry.bytes; begin += count) {
      count = std::min(kCopiedAtOnce, entry.bytes - begin);
      const auto piece = staging(kCopiedAtOnce).first(static_cast<size_t>(count));
      source_.read(entry, begin, piece);
      source_.drop_behind(entry, begin, count);
      put(entry.name, begin, piece);
    }
  }

  void write_matrix(const Item& item, const Matrix& matrix) {
    const TensorEntry& entry = *item.entry;
    const MatrixFormat& format = matrix.format;
    const std::string where = source_.label_of(entry);
    absmax_.resize(static_cast<size_t>(format.scales()));
    const auto quantize = [&](int64_t begin, std::span<const std::byte> piece) {
      const Values values{piece, entry.dtype(), begin, where};
      const int64_t count = values.count();
      codes_.resize(static_cast<size_t>(format.code_bytes(count)));
      quantize_piece(format, values, codes_,
                     std::span(absmax_).subspan(static_cast<size_t>(begin / format.block_size),
                                                static_cast<size_t>(block_count(count, format.block_size))));
      put(entry.name, format.code_bytes(begin), codes_);
    };
    read_pieces_of(source_, entry, matrix.turned, format,
                   staging(staging_bytes(format, matrix.turned, entry.dtype(), kCopiedAtOnce)), quantize);
    write_companions(item, matrix);
  }

  // The tensors of a weight are, in this order: codes, scales, nested scales if there are any, and what has bytes already.
  void write_companions(const Item& item, const Matrix& matrix) {
    std::vector<TensorWithBytes> tensors = item.tensors;
    const std::string& scales = tensors[1].tensor.name;
    if (matrix.format.type != DType::i8 && matrix.state.nested) {
      QuantState state = matrix.state;
      state.nested_offset = nested_offset(absmax_);
      std::vector<uint8_t> codes(absmax_.size());
      std::vector<float> nested(static_cast<size_t>(state.nested_blocks()));
      quantize_absmax(absmax_, state.nested_offset, codes, nested);
      put(scales, 0, std::as_bytes(std::span(codes)));
      put(tensors[2].tensor.name, 0, std::as_bytes(std::span(nested)));
      tensors = four_bit_tensors(item.entry->name, state);  // with the offset
    } else {
      put(scales, 0, std::as_bytes(std::span(absmax_)));
    }
    for (const TensorWithBytes& one : tensors)
      if (!one.bytes.empty()) put(one.tensor.name, 0, one.bytes);
  }

  const TensorSource& source_;
  SafetensorsWriter writer_;
  std::map<std::string, const TensorEntry*> places_;
  std::vector<std::byte> staging_, codes_;
  std::vector<float> absmax_;  // of the tensor that is being written
};

// How many items each file holds: as many as fit; one that is larger has a file of its own. A weight and its scales stay
// together.
std::vector<size_t> split(std::span<const Item> items, int64_t most_bytes) {
  std::vector<size_t> counts;
  int64_t bytes = 0;
  for (const Item& item : items) {
    const int64_t more = item.bytes();
    if (counts.empty() || bytes + more > most_bytes) {
      counts.push_back(0);
      bytes = 0;
    }
    ++counts.back();
    bytes += more;
  }
  return counts;
}

int64_t write_weights(const TensorSource& source, std::span<const Item> items, int64_t shard_bytes, const fs::path& to) {
  const std::vector<size_t> counts = split(items, shard_bytes);
  std::map<std::string, std::string> places;
  int64_t total = 0;
  for (size_t i = 0, begin = 0; i < counts.size(); begin += counts[i++]) {
    const std::string name = shard_name(i, counts.size());
    const auto some = items.subspan(begin, counts[i]);
    ShardWriter writer(source, to / name, some);
    for (const Item& item : some) {
      writer.write(item);
      total += item.bytes();
      for (const TensorWithBytes& one : item.tensors) places[one.tensor.name] = name;
    }
    writer.close();
  }
  if (counts.size() > 1) write_index(to, places, total);
  return static_cast<int64_t>(counts.size());
}

// ---- config.json

std::string_view torch_name(DType dtype) {
  return dtype == DType::f32 ? "float32" : dtype == DType::f16 ? "float16" : "bfloat16";
}

// As transformers' BitsAndBytesConfig writes itself. Products are computed in the dtype that the weights had.
Json quantization_config(const QuantizeRequest& request, const ModelSpec& spec, DType compute) {
  const bool int8 = request.type == DType::i8;
  Json skipped = nullptr;  // the head alone, which transformers leaves out by itself
  if (spec.vision_parameters > 0)
    skipped = {"lm_head", "vision_tower", "multi_modal_projector", "model.vision_tower", "model.multi_modal_projector"};
  return {{"_load_in_4bit", !int8},
          {"_load_in_8bit", int8},
          {"bnb_4bit_compute_dtype", torch_name(int8 ? DType::f32 : compute)},
          {"bnb_4bit_quant_storage", "uint8"},
          {"bnb_4bit_quant_type", request.type == DType::nf4 ? "nf4" : "fp4"},
          {"bnb_4bit_use_double_quant", !int8 && request.double_quant},
          {"llm_int8_enable_fp32_cpu_offload", false},
          {"llm_int8_has_fp16_weight", false},
          {"llm_int8_skip_modules", skipped},
          {"llm_int8_threshold", 6.0},
          {"load_in_4bit", !int8},
          {"load_in_8bit", int8},
          {"quant_method", "bitsandbytes"}};
}

void refuse_quantized(const fs::path& model, const ModelSpec& spec, Json& config, const TensorSource& source) {
  const std::string mend = "give the model that it was made from";
  if (spec.quantization || config.contains("quantization_config") || text_part(config).contains("quantization_config"))
    throw Error("the model is quantized already", model.string(), mend);
  for (const TensorEntry& entry : source.tensors())
    if (const std::string weight = companion_of(entry.name); !weight.empty() && source.find(weight) != nullptr)
      throw Error("the model is quantized already: '" + entry.name + "'", model.string(), mend);
}

}  // namespace

QuantizeSummary quantize_tensors(const TensorSource& source, const ModelSpec& spec, const std::string& config,
                                 const QuantizeRequest& request, const std::function<void(const fs::path&)>& beside) {
  if (request.shard_bytes <= 0) throw Error("the size of a shard must be above 0");
  const std::vector<Item> items = Items(request, spec, source).make();
  QuantizeSummary summary{.tensors = static_cast<int64_t>(items.size())};
  DType compute = spec.dtype;
  for (const Item& item : items) {
    if (item.matrix && summary.quantized++ == 0) compute = item.entry->dtype();
    summary.bytes_before += item.entry->bytes;
    summary.bytes += item.bytes();
  }
  AtomicDirectory output(request.output);
  beside(output.path());
  Json with_quantization = Json::parse(config);
  with_quantization["quantization_config"] = quantization_config(request, spec, compute);
  write_file_atomically(output.path() / "config.json", with_quantization.dump(2) + "\n");
  summary.files = write_weights(source, items, request.shard_bytes, output.path());
  output.commit();
  return summary;
}

QuantizeSummary quantize_checkpoint(const QuantizeRequest& request) {
  check_output(request.output, std::span(&request.model, 1), "quantized", request.overwrite);
  Json config = read_config_json(request.model);
  const ModelSpec spec = read_config(request.model / "config.json");
  refuse_plan_only(spec, "quantized");
  const Checkpoint checkpoint(request.model);
  refuse_quantized(request.model, spec, config, checkpoint);
  return quantize_tensors(checkpoint, spec, config.dump(), request,
                          [&](const fs::path& directory) { copy_model_files(request.model, directory); });
}

}  // namespace snug
