#include "formats/gguf_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/checked.h"
#include "base/error.h"
#include "formats/elements.h"
#include "formats/gguf_family.h"
#include "formats/gguf_tokenizer.h"
#include "formats/merge.h"
#include "formats/merged_weights.h"

namespace snug {

namespace fs = std::filesystem;

namespace {

// One tensor of the file, from one of the checkpoint or from one for each expert.
struct Piece {
  GgufTensor tensor;
  GgufPlace place;
  std::vector<const MergedTensor*> sources;
};

uint32_t file_type_of(GgufType type) {
  switch (type) {
    case GgufType::f32: return 0;
    case GgufType::f16: return 1;
    case GgufType::q8_0: return 7;
    case GgufType::bf16: return 32;
  }
  return 0;
}

GgufType own_type(const MergedWeights& weights) {
  for (const MergedTensor& tensor : weights.tensors())
    if (tensor.shape.size() >= 2)
      return tensor.dtype == DType::f32 ? GgufType::f32 : tensor.dtype == DType::f16 ? GgufType::f16 : GgufType::bf16;
  return GgufType::f32;
}

GgufType type_of(const std::vector<int64_t>& shape, const GgufPlace& place, GgufType wanted) {
  if (place.always_f32 || shape.size() < 2) return GgufType::f32;
  if (wanted == GgufType::q8_0 && shape.back() % kQ8Block != 0) return GgufType::f16;  // as llama.cpp's converter
  return wanted;
}

std::vector<Piece> plan_pieces(const MergedWeights& weights, const GgufFamily& family, GgufType wanted) {
  std::vector<Piece> pieces;
  std::map<std::string, size_t> by_name;
  for (const MergedTensor& tensor : weights.tensors()) {
    const auto place = family.place_of(tensor.name);
    if (!place) continue;
    if (!is_floating(tensor.dtype)) throw Error(fmt::format("tensor '{}' is neither F32, F16 nor BF16", tensor.name));
    std::vector<int64_t> shape = tensor.shape;
    if (place->change == GgufChange::transpose && shape.size() == 2) std::swap(shape[0], shape[1]);
    if (place->change == GgufChange::interleave_heads && (shape.empty() || shape[0] % (2 * place->heads) != 0))
      throw Error(fmt::format("tensor '{}' is not made of {} heads", tensor.name, place->heads));
    const auto [at, fresh] = by_name.emplace(place->name, pieces.size());
    if (fresh) {
      pieces.push_back({{place->name, type_of(shape, *place, wanted), shape}, *place, {}});
      if (place->expert >= 0) {
        pieces.back().tensor.shape.insert(pieces.back().tensor.shape.begin(), family.experts);
        pieces.back().sources.resize(static_cast<size_t>(family.experts));
      }
    }
    Piece& piece = pieces[at->second];
    if (place->expert < 0) {
      piece.sources.push_back(&tensor);
    } else {
      piece.sources[static_cast<size_t>(place->expert)] = &tensor;
      if (tensor.shape != std::vector(piece.tensor.shape.begin() + 1, piece.tensor.shape.end()))
        throw Error(fmt::format("the experts of '{}' differ in shape", piece.tensor.name));
    }
  }
  for (const Piece& piece : pieces)
    if (std::find(piece.sources.begin(), piece.sources.end(), nullptr) != piece.sources.end())
      throw Error(fmt::format("experts of '{}' are missing", piece.tensor.name));
  return pieces;
}

void write_values(GgufWriter& writer, std::span<const float> values, GgufType type, int64_t row_elements) {
  const auto rows = static_cast<int64_t>(values.size()) / std::max<int64_t>(1, row_elements);
  std::vector<std::byte> bytes(static_cast<size_t>(rows * gguf_row_bytes(type, row_elements)));
  encode_gguf(values, type, bytes);
  writer.write(bytes);
}

// Rows of each head: the halves of a head become pairs (LlamaModel.permute in llama.cpp's converter).
std::vector<float> interleaved(std::span<const float> values, int64_t head_rows, int64_t columns) {
  std::vector<float> out(values.size());
  const int64_t half = head_rows / 2, rows = static_cast<int64_t>(values.size()) / std::max<int64_t>(1, columns);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t head = row / head_rows, within = row % head_rows;
    const int64_t from = head * head_rows + within % 2 * half + within / 2;
    std::copy_n(values.begin() + from * columns, columns, out.begin() + row * columns);
  }
  return out;
}

std::vector<float> transposed(std::span<const float> values, int64_t rows, int64_t columns) {
  std::vector<float> out(values.size());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      out[static_cast<size_t>(column * rows + row)] = values[static_cast<size_t>(row * columns + column)];
  return out;
}

void write_source(GgufWriter& writer, const Piece& piece, const MergedTensor& source) {
  MergedReader reader(source);
  const GgufChange change = piece.place.change;
  const int64_t columns = source.row_elements(), rows = source.rows();
  const int64_t head_rows = change == GgufChange::interleave_heads ? rows / piece.place.heads : 1;
  int64_t at_once = align_up(rows_at_once(source), head_rows);
  if (change == GgufChange::transpose || piece.tensor.shape.size() == 1) at_once = rows;
  std::vector<std::byte> bytes;
  std::vector<float> values;
  for (int64_t row = 0; row < rows; row += at_once) {
    const int64_t count = std::min(at_once, rows - row);
    bytes.resize(static_cast<size_t>(count * source.row_bytes()));
    values.resize(static_cast<size_t>(count * columns));
    reader.read(row, bytes);
    decode_elements(bytes, source.dtype, values);
    if (change == GgufChange::add_one)
      for (float& value : values) value += 1.0F;
    if (change == GgufChange::interleave_heads) values = interleaved(values, head_rows, columns);
    if (change == GgufChange::transpose) values = transposed(values, rows, columns);
    write_values(writer, values, piece.tensor.type, piece.tensor.shape.back());
  }
}

// A file that is removed again unless it was put in its place.
class NewFile {
 public:
  explicit NewFile(fs::path target) : target_(std::move(target)), temporary_(temporary_name(target_)) {
    if (fs::is_directory(target_)) throw Error("is a directory", target_.string(), "name a file");
    std::error_code error;
    fs::create_directories(parent_of(target_), error);
    if (error) throw_errno("the directory cannot be created", parent_of(target_), error.value());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    std::error_code ignored;
    fs::remove(temporary_, ignored);  // gone already where commit was reached
  }
  const fs::path& path() const { return temporary_; }
  void commit() {
    rename_path(temporary_, target_);
    sync_path(parent_of(target_));
  }

 private:
  fs::path target_, temporary_;
};

std::string name_of_directory(const fs::path& directory) {
  const fs::path whole = fs::weakly_canonical(directory);
  return whole.has_filename() ? whole.filename().string() : whole.parent_path().filename().string();
}

void check_vocabulary(const MergedWeights& weights, GgufFamily& family) {
  for (const MergedTensor& tensor : weights.tensors())
    if (const auto place = family.place_of(tensor.name); place && place->name == "token_embd.weight") {
      if (tensor.rows() == family.vocab_size) return;
      family.vocab_size = tensor.rows();  // an adapter, or a resized checkpoint, has more tokens
      for (auto& [key, value] : family.keys)
        if (key.ends_with(".vocab_size")) value = static_cast<uint32_t>(tensor.rows());
    }
}

}  // namespace

std::optional<GgufType> find_gguf_type(std::string_view name) {
  if (name == "f32") return GgufType::f32;
  if (name == "f16") return GgufType::f16;
  if (name == "bf16") return GgufType::bf16;
  if (name == "q8_0") return GgufType::q8_0;
  return std::nullopt;
}

GgufSummary export_gguf(const GgufRequest& request) {
  std::vector<AdapterFile> adapters;
  for (const fs::path& path : request.adapters) adapters.emplace_back(path);
  GgufFamily family = read_gguf_family(request.model);
  const Checkpoint base(request.model);
  const MergedWeights weights(base, adapters, has_tied_head(request.model, base.find("lm_head.weight") != nullptr));
  check_vocabulary(weights, family);
  const GgufType type = request.type.value_or(own_type(weights));
  const std::vector<Piece> pieces = plan_pieces(weights, family, type);

  GgufKeys keys = {{"general.architecture", family.architecture},
                   {"general.type", std::string("model")},
                   {"general.name", name_of_directory(request.model)},
                   {"general.file_type", file_type_of(type)},
                   {"general.quantization_version", uint32_t{2}}};
  keys.insert(keys.end(), family.keys.begin(), family.keys.end());
  const bool from_adapter = !request.adapters.empty() && is_there(request.adapters.back() / "tokenizer.json");
  const GgufKeys tokenizer =
      gguf_tokenizer_keys(from_adapter ? request.adapters.back() : request.model, family, request.pretokenizer);
  keys.insert(keys.end(), tokenizer.begin(), tokenizer.end());

  std::vector<GgufTensor> tensors;
  if (!family.rope_factors.empty())
    tensors.push_back({"rope_freqs.weight", GgufType::f32, {static_cast<int64_t>(family.rope_factors.size())}});
  for (const Piece& piece : pieces) tensors.push_back(piece.tensor);
  NewFile file(request.file);
  GgufWriter writer(file.path(), keys, tensors);
  if (!family.rope_factors.empty()) writer.write(std::as_bytes(std::span(family.rope_factors)));
  for (const Piece& piece : pieces)
    for (const MergedTensor* source : piece.sources) write_source(writer, piece, *source);
  writer.finish();
  file.commit();
  return {static_cast<int64_t>(tensors.size()), writer.file_bytes(), family.architecture,
          std::get<std::string>(tokenizer.front().second) != "none", family.notes};
}

namespace {

// One adapted module on its way into a GGUF adapter.
struct AdapterPiece {
  std::string module;
  GgufPlace place;
  bool embedding = false;
  int64_t rank = 0, in = 0, out = 0;
  GgufTensor a, b;
};

AdapterPiece plan_piece(const AdapterFile& adapter, const std::string& module, const AdaptedModule& entries,
                        const GgufFamily& family, GgufType type) {
  const std::string where = adapter.path().string();
  if (entries.magnitude != nullptr)
    throw Error("an adapter with DoRA cannot be exported by itself", where, "export the merged model with --adapter");
  const auto place = family.place_of(module + ".weight");
  if (!place || place->expert >= 0) throw Error(fmt::format("the adapter of '{}' cannot be exported", module), where);
  const bool mlx = adapter.is_mlx();
  AdapterPiece piece{.module = module,
                     .place = *place,
                     .embedding = entries.embedding,
                     .rank = entries.a->shape[mlx ? 1 : 0],
                     .in = entries.a->shape[mlx ? 0 : 1],
                     .out = entries.b->shape[mlx ? 1 : 0]};
  if (place->change == GgufChange::interleave_heads && piece.out % (2 * place->heads) != 0)
    throw Error(fmt::format("the adapter of '{}' is not made of {} heads", module, place->heads), where);
  // Of an embedding's A whole rows of tokens are read.
  const std::vector<int64_t> a = entries.embedding ? std::vector{piece.in, piece.rank} : std::vector{piece.rank, piece.in};
  const std::vector<int64_t> b = {piece.out, piece.rank};
  piece.a = {place->name + ".lora_a", type_of(a, {}, type), a};
  piece.b = {place->name + ".lora_b", type_of(b, {}, type), b};
  return piece;
}

void write_adapter_piece(GgufWriter& writer, const AdapterFile& adapter, const AdapterPiece& piece, float alpha) {
  LowRankChange change = adapter.change_of(piece.module);
  // left * right is the change in the layout of the weight's file: B * A, or its transpose.
  std::vector<float> a = std::move(change.right), b = std::move(change.left);
  if (piece.embedding || adapter.config().fan_in_fan_out) {
    std::swap(a, b);
    b = transposed(b, change.rank, piece.out);
    if (!piece.embedding) a = transposed(a, piece.in, change.rank);
  }
  const float factor = change.scale * static_cast<float>(change.rank) / alpha;
  if (factor != 1.0F)
    for (float& value : b) value *= factor;
  if (piece.place.change == GgufChange::interleave_heads) b = interleaved(b, piece.out / piece.place.heads, piece.rank);
  write_values(writer, a, piece.a.type, piece.a.shape.back());
  write_values(writer, b, piece.b.type, piece.b.shape.back());
}

void refuse_what_only_merging_can(const AdapterFile& adapter, const fs::path& model) {
  constexpr const char* kMend = "export the merged model: snug export MODEL --adapter ADAPTER --gguf FILE";
  if (!adapter.replacements().empty())
    throw Error(
        fmt::format("the adapter holds '{}' whole, which a GGUF adapter cannot", adapter.replacements().begin()->first),
        adapter.path().string(), kMend);
  if (adapter.modules().contains("lm_head") && has_tied_head(model, false))
    throw Error("the adapter changes a head that is tied to the embedding, which llama.cpp cannot", adapter.path().string(),
                kMend);
}

}  // namespace

GgufSummary export_gguf_adapter(const fs::path& adapter_directory, const fs::path& model, const fs::path& target,
                                GgufType type) {
  const AdapterFile adapter(adapter_directory);
  const GgufFamily family = read_gguf_family(model);
  refuse_what_only_merging_can(adapter, model);
  std::vector<AdapterPiece> pieces;
  std::vector<GgufTensor> tensors;
  for (const auto& [module, entries] : adapter.modules()) {
    pieces.push_back(plan_piece(adapter, module, entries, family, type));
    tensors.push_back(pieces.back().a);
    tensors.push_back(pieces.back().b);
  }
  // The file has one alpha for all; what a module's own scale differs by goes into its B.
  const float alpha = adapter.is_mlx() ? 1.0F : static_cast<float>(adapter.config().lora_alpha);
  const GgufKeys keys = {
      {"general.architecture", family.architecture}, {"general.type", std::string("adapter")},
      {"adapter.type", std::string("lora")},         {"general.name", name_of_directory(adapter_directory)},
      {"general.file_type", file_type_of(type)},     {"adapter.lora.alpha", alpha},
      {"general.quantization_version", uint32_t{2}}};
  NewFile file(target);
  GgufWriter writer(file.path(), keys, tensors);
  for (const AdapterPiece& piece : pieces) write_adapter_piece(writer, adapter, piece, alpha);
  writer.finish();
  file.commit();
  return {static_cast<int64_t>(tensors.size()), writer.file_bytes(), family.architecture, false, {}};
}

}  // namespace snug
