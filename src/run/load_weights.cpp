#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/element_count.h"
#include "base/error.h"
#include "base/philox.h"
#include "formats/adapter.h"
#include "formats/bnb_tensors.h"
#include "formats/model_tensors.h"
#include "run/in_place.h"
#include "run/weight_files.h"
#include "run/weight_pieces.h"

namespace snug {

namespace {

// Reads end at multiples of this in the file. What was read is dropped from the page cache before the next read, so that
// the cache takes the same few pages again: fresh ones cost more than the disk.
constexpr int64_t kStagedAtOnce = int64_t{4} << 20;

// Elements of `entry` to read at once from element `begin` on; at least one.
int64_t elements_at_once(const TensorEntry& entry, int64_t begin, int64_t most) {
  const int64_t size = size_of(entry.dtype());
  const int64_t to_boundary = kStagedAtOnce - (entry.offset + begin * size) % kStagedAtOnce;
  return std::min({std::max<int64_t>(1, element_count(entry.dtype(), to_boundary)), most, entry.elements() - begin});
}

// The dtype of a tensor that is read as `wanted`: codes as they are, numbers of any floating-point type. Throws Error for
// another shape or type.
DType require_weights(const Checkpoint& checkpoint, const TensorEntry& entry, const std::vector<int64_t>& shape,
                      DType wanted = DType::f32) {
  if (entry.shape != shape)
    throw Error("tensor '" + entry.name + "' has another shape than the model's configuration says",
                checkpoint.path().string(), "use the config.json that belongs to these weights");
  const DType from = entry.dtype();
  if (wanted == DType::u8 && from != DType::u8)
    throw Error("tensor '" + entry.name + "' is " + std::string(name_of(from)), checkpoint.path().string(),
                "8-bit states must be U8");
  if (wanted == DType::u8) return from;
  if (from != DType::f32 && from != DType::bf16 && from != DType::f16)
    throw Error("tensor '" + entry.name + "' is " + std::string(name_of(from)), checkpoint.path().string(),
                "weights must be F32, F16 or BF16");
  return from;
}

constexpr float kBeyondF16 = 65520.0F;  // rounds to infinity

// Elements of a tensor, one after the other.
struct Elements {
  int64_t begin, count;
};

// Reads these, of a type that was looked at, into memory, through staging where the dtype changes.
void read_elements(const Checkpoint& checkpoint, const TensorEntry& entry, Elements elements, DType to,
                   std::span<std::byte> out, std::span<std::byte> staging) {
  const DType from = entry.dtype();
  const bool straight = from == to;
  const int64_t most = straight ? kStagedAtOnce : element_count(from, static_cast<int64_t>(staging.size()));
  for (int64_t done = 0, count = 0; done < elements.count; done += count) {
    const int64_t begin = elements.begin + done;
    count = std::min(elements_at_once(entry, begin, most), elements.count - done);
    std::byte* const target = out.data() + done * size_of(to);
    const auto bytes = static_cast<size_t>(count * size_of(from));
    const std::span<std::byte> read = straight ? std::span(target, bytes) : staging.first(bytes);
    checkpoint.read(entry, begin * size_of(from), read);
    checkpoint.drop_behind(entry, begin * size_of(from), static_cast<int64_t>(bytes));
    if (straight) continue;
    for (int64_t i = 0; i < count; ++i) {
      const float value = element_as_float(read.data(), from, static_cast<size_t>(i));
      if (to == DType::f16 && std::abs(value) >= kBeyondF16 && std::isfinite(value))
        throw Error(fmt::format("tensor '{}' holds {:g}, which is too large for float16", entry.name, value),
                    checkpoint.path().string(), "use bf16: true");
      store_float(target, to, static_cast<size_t>(i), value);
    }
  }
}

// Reads one tensor into its place.
void read_tensor(const Checkpoint& checkpoint, const TensorEntry& entry, const Tensor& tensor, std::span<std::byte> out,
                 std::span<std::byte> staging) {
  std::vector<int64_t> shape;
  for (const Extent& extent : tensor.shape) shape.push_back(extent.bound);
  require_weights(checkpoint, entry, shape, tensor.dtype);
  read_elements(checkpoint, entry, {0, entry.elements()}, tensor.dtype, out, staging);
}

// Reads one tensor into the far home, slice by slice: the file's bytes through the first half of staging, ours through the
// second.
void read_far_tensor(Executor& executor, const Checkpoint& checkpoint, const TensorEntry& entry, const WeightPart& part,
                     std::span<std::byte> staging) {
  const Tensor tensor = tensor_of(executor, part);
  std::vector<int64_t> shape;
  for (const Extent& extent : tensor.shape) shape.push_back(extent.bound);
  const int64_t from = size_of(require_weights(checkpoint, entry, shape, tensor.dtype)), size = size_of(tensor.dtype);
  const size_t half = staging.size() / 2;
  const int64_t most = static_cast<int64_t>(half) / std::max(from, size);
  for (int64_t begin = 0, count = 0; begin < entry.elements(); begin += count) {
    count = std::min(most, entry.elements() - begin);
    const std::span<std::byte> ours = staging.subspan(half, static_cast<size_t>(count * size));
    read_elements(checkpoint, entry, {begin, count}, tensor.dtype, ours, staging.first(half));
    executor.transfer().write_bytes(part.tensor, part.layer, begin_of(executor, part) + begin * size, ours);
  }
}

// Into its place, or through staging where it has none in this rank's memory.
void read_part(Executor& executor, const Checkpoint& file, const TensorEntry& whole, const WeightPart& part,
               std::span<std::byte> staging) {
  const TensorEntry entry = own_cut(executor, part, whole, file.path().string());
  if (const std::span<std::byte> in_place = bytes_of(executor, part); in_place.empty()) {
    read_far_tensor(executor, file, entry, part, staging);
  } else {
    read_tensor(file, entry, tensor_of(executor, part), in_place, staging);
  }
}

uint64_t name_hash(const std::string& name) {  // FNV-1a: each tensor draws from a stream of its own
  uint64_t hash = 14695981039346656037ULL;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

// Fills one layer of a weight of an adapter, in place or through staging: make(i) is its element i.
template <class Make>
void fill_adapter(Executor& executor, TensorId tensor, int64_t layer, std::span<std::byte> staging, const Make& make) {
  std::span<float> out = InPlace::elements<float>(executor, tensor, layer);
  const bool in_place = !out.empty();
  if (!in_place) out = {reinterpret_cast<float*>(staging.data()), staging.size() / sizeof(float)};
  const auto elements = static_cast<size_t>(executor.program().tensor(tensor).elements());
  for (size_t begin = 0; begin < elements; begin += out.size()) {
    const std::span<float> some = out.first(std::min(out.size(), elements - begin));
    for (size_t i = 0; i < some.size(); ++i) some[i] = make(begin + i);
    if (!in_place) executor.transfer().write(tensor, static_cast<int64_t>(begin), std::span<const float>(some), layer);
  }
}

void draw_lora_a(Executor& executor, const Weight& weight, int64_t layer, uint64_t seed, std::span<std::byte> staging) {
  const Philox random{seed, name_hash(weight.parameter.instance(layer))};
  const int64_t features = weight.parameter.shape[1];
  const float bound = 1.0F / std::sqrt(static_cast<float>(features));
  const RankMesh& mesh = executor.program().mesh;
  const int64_t own = executor.program().tensor(weight.tensor).dim(1);  // of these this rank has so many, from here on
  const int64_t first = weight.slice ? mesh.index(weight.slice->group, executor.transfer().rank()) * own : 0;
  fill_adapter(executor, weight.tensor, layer, staging, [&](size_t i) {
    const auto index = static_cast<int64_t>(i);
    return bound * (2.0F * random.uniform(static_cast<uint64_t>(index / own * features + first + index % own)) - 1.0F);
  });
}

// A tensor that would change the result if it were used must not be passed over.
void refuse_unused(const ModelSpec& model, const Checkpoint& base, const std::set<std::string>& used, bool tied) {
  for (const TensorEntry& entry : base.tensors()) {
    const bool harmless = is_beside_the_model(model, entry.name) || (tied && entry.name.ends_with("lm_head.weight"));
    if (!harmless && !used.contains(entry.name) && !used.contains(companion_of(entry.name)))
      throw Error("tensor '" + entry.name + "' has no place in this model", base.path().string(),
                  "check that config.json belongs to these weights");
  }
}

void read_pieces(Executor& executor, const ModelSpec& model, const std::vector<WeightPiece>& pieces, const Checkpoint& file,
                 std::span<std::byte> staging) {
  const auto towers = std::count_if(file.tensors().begin(), file.tensors().end(),
                                    [&](const TensorEntry& entry) { return is_in_tower(model, entry.name); });
  const size_t trained = file.tensors().size() - static_cast<size_t>(towers);
  if (pieces.size() != trained && executor.program().mesh.pipeline == 1)
    throw Error("holds " + std::to_string(trained) + " tensors where this recipe has " + std::to_string(pieces.size()),
                file.path().string(), "use the recipe that made it");
  for (const WeightPiece& piece : pieces) {
    const WeightPart& part = piece.part;
    if (!is_here(executor, part)) continue;
    const TensorEntry* former = file.find(piece.name) == nullptr ? file.find(former_name(piece)) : nullptr;
    const TensorEntry& entry = former != nullptr ? *former : find_tensor(model, file, piece.name);
    read_part(executor, file, entry, part, staging);
  }
}

// What of a checkpoint goes where.
struct Source {
  const TensorEntry* entry;
  WeightPart part;
  const Weight* weight;
};

// A quantized matrix and its scales, one layer's and expert's part of each: where they lie, or in the piece that the plan
// gives, from where they go to the far home.
class MatrixParts {
 public:
  MatrixParts(Executor& executor, const Quantization& how, const WeightPart& part, std::span<std::byte> piece)
      : executor_(executor), piece_(piece) {
    const Tensor codes = tensor_of(executor, part);
    const std::span<float> offset = part_of<float>({how.absmax_offset, part.layer, part.expert, part.slice});
    matrix_ = {.type = codes.dtype,
               .rows = codes.dim(0),
               .columns = codes.dim(1),
               .block_size = how.block_size,
               .codes = part_of<std::byte>(part),
               .absmax = part_of<std::byte>({how.absmax, part.layer, part.expert, part.slice}),
               .nested_absmax = part_of<float>({how.nested_absmax, part.layer, part.expert, part.slice}),
               .offset = offset.empty() ? nullptr : offset.data()};
  }

  const QuantizedMatrix& matrix() const { return matrix_; }

  void send() const {
    for (const auto& [part, bytes] : far_)
      executor_.transfer().write_bytes(part.tensor, part.layer, begin_of(executor_, part), bytes);
  }

 private:
  // Empty where there is no such tensor.
  template <class T>
  std::span<T> part_of(const WeightPart& part) {
    if (part.tensor == kNone) return {};
    std::span<std::byte> bytes = bytes_of(executor_, part);
    if (bytes.empty()) {
      bytes = piece_.first(static_cast<size_t>(tensor_of(executor_, part).bytes()));
      piece_ = piece_.subspan(static_cast<size_t>(align_up(static_cast<int64_t>(bytes.size()), kAlignment)));
      far_.emplace_back(part, bytes);
    }
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  Executor& executor_;
  std::span<std::byte> piece_;  // what is left of it
  std::vector<std::pair<WeightPart, std::span<std::byte>>> far_;
  QuantizedMatrix matrix_;
};

// Reads in the order of the files: jumping costs a disk, and the kernel's read-ahead, much of their speed.
void read_forward(Executor& executor, const Checkpoint& base, std::vector<Source>& sources, const LoadRoom& room) {
  std::sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) {
    return std::pair(a.entry->file, a.entry->offset) < std::pair(b.entry->file, b.entry->offset);
  });
  for (const auto& [entry, part, weight] : sources) {
    if (weight->quantization) {
      const MatrixParts parts(executor, *weight->quantization, part, room.piece);
      load_quantized(base, own_cut(executor, part, *entry, base.path().string()), weight->parameter.input_features_first,
                     parts.matrix(), room);
      parts.send();
    } else {
      read_part(executor, base, *entry, part, room.staging);
    }
  }
}

// One layer's elements of a weight as fp32, slice by slice, as far as this rank holds the copy. What lies elsewhere passes
// through staging: the weight's elements through its first third, the copy's through the rest.
void fill_master(Executor& executor, const Weight& weight, TensorId copy, int64_t layer, std::span<std::byte> staging) {
  const DType dtype = executor.program().tensor(weight.tensor).dtype;
  const auto size = static_cast<size_t>(size_of(dtype));
  const auto [first, end] = executor.transfer().held_bytes(copy, layer);
  const auto elements = static_cast<size_t>(end) / sizeof(float);
  const std::span<std::byte> weights = InPlace::elements(executor, weight.tensor, layer);
  const std::span<std::byte> copies = InPlace::elements(executor, copy, layer);
  const bool straight = !weights.empty() && !copies.empty();
  const size_t most = straight ? elements : staging.size() / (size + sizeof(float));
  for (size_t begin = static_cast<size_t>(first) / sizeof(float), count = 0; begin < elements; begin += count) {
    count = std::min(most, elements - begin);
    const auto slice = [&](std::span<std::byte> in_place, size_t bytes, size_t staged) {
      return in_place.empty() ? staging.subspan(staged, count * bytes) : in_place.subspan(begin * bytes, count * bytes);
    };
    const std::span<std::byte> from = slice(weights, size, 0), to = slice(copies, sizeof(float), most * size);
    if (weights.empty()) executor.transfer().read_bytes(weight.tensor, layer, static_cast<int64_t>(begin * size), from);
    for (size_t i = 0; i < count; ++i) store_float(to.data(), DType::f32, i, element_as_float(from.data(), dtype, i));
    if (copies.empty()) executor.transfer().write_bytes(copy, layer, static_cast<int64_t>(begin * sizeof(float)), to);
  }
}

// The fp32 copies of bf16 and f16 weights start from what was just loaded or drawn.
void fill_masters(Executor& executor, std::span<std::byte> staging) {
  for (const Weight& weight : executor.program().weights) {
    const TensorId copy = weight.state(Slot::master);
    if (copy == kNone) continue;
    for (int64_t layer = weight.parameter.first_layer; layer < end_layer(executor, weight); ++layer)
      fill_master(executor, weight, copy, layer, staging);
  }
}

// The lengths of a weight's rows.
Op row_norms(const Weight& of, TensorId norms) {
  Op op{OpKind::dora_norm};
  op.attributes.transpose_b = !of.parameter.input_features_first || of.quantization;
  op.reads(Slot::weight, of.tensor).writes(Slot::norm, norms);
  if (!of.quantization) return op;
  op.attributes.block_size = of.quantization->block_size;
  op.attributes.values = of.quantization->values;
  op.reads(Slot::absmax, of.quantization->absmax);
  if (of.quantization->nested_absmax == kNone) return op;
  return op.reads(Slot::nested_absmax, of.quantization->nested_absmax)
      .reads(Slot::absmax_offset, of.quantization->absmax_offset);
}

// Magnitudes of DoRA start as the lengths of the rows that they scale.
void fill_magnitudes(Executor& executor, std::span<std::byte> staging) {
  const std::vector<Weight>& weights = executor.program().weights;
  for (const Weight& weight : weights) {
    if (weight.origin != Origin::row_norms) continue;
    const auto base = std::find_if(weights.begin(), weights.end(), [&](const Weight& w) {
      return w.parameter.name == weight.source && w.parameter.first_layer == weight.parameter.first_layer;
    });
    const Op norms = row_norms(*base, weight.tensor);
    for (int64_t layer = weight.parameter.first_layer; layer < end_layer(executor, weight); ++layer)
      executor.run_apart(norms, layer, staging);
  }
}

}  // namespace

void read_numbers(const Checkpoint& checkpoint, const TensorEntry& entry, const std::vector<int64_t>& shape,
                  std::span<std::byte> staging, const std::function<void(int64_t, float)>& visit) {
  const DType from = require_weights(checkpoint, entry, shape);
  const int64_t most = element_count(from, static_cast<int64_t>(staging.size()));
  for (int64_t begin = 0, count = 0; begin < entry.elements(); begin += count) {
    count = elements_at_once(entry, begin, most);
    const std::span<std::byte> read = staging.first(static_cast<size_t>(count * size_of(from)));
    checkpoint.read(entry, begin * size_of(from), read);
    for (int64_t i = 0; i < count; ++i) visit(begin + i, element_as_float(read.data(), from, static_cast<size_t>(i)));
  }
}

void load_model(Executor& executor, const ModelSpec& model, const Checkpoint& base, uint64_t seed, const LoadRoom& room) {
  std::set<std::string> used;
  std::vector<Source> sources;
  bool has_head = false;
  for (const Weight& weight : executor.program().weights) {
    has_head = has_head || (weight.parameter.kind == ParameterKind::head && !weight.adapter);
    Parameter source = weight.parameter;
    source.name = weight.source;
    for_each_part(executor, weight, [&](int64_t layer, int64_t expert) {
      if (weight.origin == Origin::checkpoint) {
        const TensorEntry& entry = find_tensor(model, base, source.instance(layer, expert));
        used.insert(entry.name);
        const WeightPart part{weight.tensor, layer, expert, slice_of(weight)};
        if (is_here(executor, part)) sources.push_back({&entry, part, &weight});
      } else if (weight.origin == Origin::lora_a) {
        draw_lora_a(executor, weight, layer, seed, room.staging);
      } else if (weight.origin == Origin::zeros) {
        fill_adapter(executor, weight.tensor, layer, room.staging, [](size_t) { return 0.0F; });
      }
    });
  }
  read_forward(executor, base, sources, room);
  fill_magnitudes(executor, room.staging);
  fill_masters(executor, room.staging);
  if (executor.program().mesh.pipeline == 1) refuse_unused(model, base, used, !has_head);  // else other stages use them
}

LoadRoom load_room(const Executor& executor, const Op& load) {
  LoadRoom room;
  for (const Operand& operand : load.operands) {
    if (operand.slot == Slot::window) room.piece = executor.transfer().host_room<std::byte>(operand.tensor);
    if (operand.slot != Slot::staging) continue;
    if (room.staging.empty()) {
      room.staging = executor.transfer().host_room<std::byte>(operand.tensor);
    } else {
      room.absmax = executor.transfer().host_room<float>(operand.tensor);
    }
  }
  return room;
}

namespace {

// Training an adapter on means to compute what it was trained for: each module's scale, and whether rows are normalized.
void require_same_variant(const Executor& executor, const AdapterConfig& config, const Lora& lora,
                          const std::filesystem::path& directory) {
  if (config.use_dora != lora.use_dora)
    throw Error(std::string("the adapter was trained with") + (config.use_dora ? "" : "out") + " use_dora",
                directory.string(), std::string("set use_dora: ") + (config.use_dora ? "true" : "false"));
  for (const Weight& weight : executor.program().weights) {
    if (weight.origin != Origin::lora_a) continue;
    for (int64_t layer = weight.parameter.first_layer; layer < end_layer(executor, weight); ++layer) {
      const std::string name = weight.parameter.instance(layer);
      const std::string_view path = std::string_view(name).substr(0, name.size() - kLoraAEnd.size());
      const int64_t rank = pattern_value(config.rank_pattern, path, config.r);
      const bool same_scale = std::abs(config.scale_of(path, rank) - lora.scale_of(path)) <= 1e-12 * lora.scale_of(path);
      if (rank != lora.rank_of(path) || !same_scale)
        throw Error("the adapter has another rank or scale of '" + std::string(path) + "'", directory.string(),
                    "give the same use_rslora, rank_pattern and alpha_pattern in the recipe");
    }
  }
}

}  // namespace

void load_adapter(Executor& executor, const std::filesystem::path& directory, const Lora& lora,
                  std::span<std::byte> staging) {
  const AdapterConfig config = read_adapter_config(directory);
  if (config.r != lora.r || config.lora_alpha != lora.alpha)
    throw Error("the adapter has r " + std::to_string(config.r) + " and lora_alpha " + std::to_string(config.lora_alpha),
                directory.string(), "give the same lora_r and lora_alpha in the recipe");
  require_same_variant(executor, config, lora, directory);
  const Checkpoint file(directory / "adapter_model.safetensors");
  std::vector<WeightPiece> pieces = trained_pieces(executor, Naming::adapter);
  // PEFT may store the frozen matrix below an adapted, tied head as well; it is the base model's and not needed.
  for (const WeightPiece& piece : pieces)
    if (is_here(executor, piece.part)) read_part(executor, file, file.at(piece.name), piece.part, staging);
  for (const TensorEntry& entry : file.tensors()) {
    const bool known =
        executor.program().mesh.pipeline > 1 || entry.name.ends_with(".base_layer.weight") ||
        std::any_of(pieces.begin(), pieces.end(), [&](const WeightPiece& piece) { return piece.name == entry.name; });
    if (!known)
      throw Error("tensor '" + entry.name + "' has no place in this recipe", file.path().string(),
                  "give the adapter's target modules");
  }
}

void load_state(Executor& executor, const ModelSpec& model, const std::filesystem::path& directory, const Lora& lora,
                std::span<std::byte> staging) {
  if (is_adapter(executor)) {
    load_adapter(executor, directory, lora, staging);
  } else {
    read_pieces(executor, model, trained_pieces(executor, Naming::model), Checkpoint(directory / "model.safetensors"),
                staging);
  }
  read_pieces(executor, model, state_pieces(executor), Checkpoint(directory / kStateFile), staging);
}

}  // namespace snug
