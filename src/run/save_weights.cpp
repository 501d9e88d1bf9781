#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>

#include "comm/agree.h"
#include "formats/adapter.h"
#include "formats/model_tensors.h"
#include "formats/safetensors_writer.h"
#include "run/weight_files.h"
#include "run/weight_pieces.h"

namespace snug {

namespace {

bool is_first(const Executor& executor) { return executor.ranks() == nullptr || executor.ranks()->rank() == 0; }

// Tensors of the base model that are written as they are.
struct Tower {
  const Checkpoint* base = nullptr;
  std::map<std::string, const TensorEntry*> tensors;
};

Tower tower_of(const ModelSpec& model, const Checkpoint& base) {
  Tower tower{&base, {}};
  for (const TensorEntry& entry : base.tensors())
    if (is_in_tower(model, entry.name)) tower.tensors[entry.name] = &entry;
  return tower;
}

// `write`: takes the bytes from byte `begin` on.
template <class Write>
void copy_tensor(const Checkpoint& base, const TensorEntry& entry, const Write& write) {
  std::array<std::byte, 32768> chunk;
  const int64_t bytes = entry.elements() * size_of(entry.dtype());
  for (int64_t begin = 0; begin < bytes; begin += static_cast<int64_t>(chunk.size())) {
    const std::span<std::byte> part =
        std::span(chunk).first(static_cast<size_t>(std::min<int64_t>(chunk.size(), bytes - begin)));
    base.read(entry, begin, part);
    base.drop_behind(entry, begin, static_cast<int64_t>(part.size()));
    write(begin, part);
  }
}

void write_part(const Executor& executor, const WeightPart& part, SafetensorsWriter& writer, std::span<std::byte> staging) {
  if (const auto in_place = bytes_of(executor, part); !in_place.empty()) return writer.write(in_place);
  const int64_t bytes = tensor_of(executor, part).bytes(), begin = begin_of(executor, part);
  const auto most = static_cast<int64_t>(staging.size());
  for (int64_t done = 0; done < bytes; done += most) {
    const std::span<std::byte> some = staging.first(static_cast<size_t>(std::min(most, bytes - done)));
    executor.transfer().read_bytes(part.tensor, part.layer, begin + done, some);
    writer.write(some);
  }
}

// What this rank writes of a part: its share of what is spread, in the first replica, or all that it has where it is its
// turn to write a piece of this number.
void write_share(const Executor& executor, const WeightPart& part, const TensorEntry& entry, int64_t piece,
                 SafetensorsWriter& writer, std::span<std::byte> staging) {
  const Transfer& transfer = executor.transfer();
  const RankMesh& mesh = executor.ranks()->mesh();
  const int64_t rank = executor.ranks()->rank();
  const bool alike = part.slice == nullptr;  // what those who split products, or experts, have
  if (!is_here(executor, part)) return;
  if (executor.program().tensor(part.tensor).spread) {
    if (mesh.index(RankGroup::replica, rank) != 0) return;
  } else {
    const RankGroup turns = alike                                    ? RankGroup::stage
                            : part.slice->group == RankGroup::expert ? RankGroup::expert_data
                                                                     : RankGroup::data;
    if (piece % mesh.size(turns) != mesh.index(turns, rank)) return;
  }
  const TensorEntry own = own_cut(executor, part, entry, "");
  const auto write = [&](int64_t at, std::span<const std::byte> some) {
    for_each_run(own.cut.get(), at, static_cast<int64_t>(some.size()), [&](int64_t to, int64_t count) {
      writer.write_at(entry, to, some.first(static_cast<size_t>(count)));
      some = some.subspan(static_cast<size_t>(count));
    });
  };
  const int64_t bytes = tensor_of(executor, part).bytes(), begin = begin_of(executor, part);
  if (const auto in_place = bytes_of(executor, part); !in_place.empty()) return write(0, in_place);
  const auto [first, end] = transfer.held_bytes(part.tensor, part.layer);
  const int64_t until = std::min(begin + bytes, end);
  const auto most = static_cast<int64_t>(staging.size());
  for (int64_t done = std::max(begin, first); done < until; done += most) {
    const std::span<std::byte> some = staging.first(static_cast<size_t>(std::min(most, until - done)));
    transfer.read_bytes(part.tensor, part.layer, done, some);
    write(done - begin, some);
  }
}

// What all stages have: their tensors' names, types and shapes, each stage's own first.
std::vector<TensorToWrite> of_all_stages(const Executor& executor, std::vector<TensorToWrite> own) {
  if (executor.program().mesh.pipeline == 1) return own;
  std::string text;
  for (const TensorToWrite& tensor : own)
    text += fmt::format("{} {} {}\n", tensor.name, static_cast<int>(tensor.dtype), fmt::join(tensor.shape, " "));
  std::set<std::string> names;
  for (const TensorToWrite& tensor : own) names.insert(tensor.name);
  for (const std::string& theirs : texts_of_ranks(executor.ranks()->of(RankGroup::pipeline), text)) {
    std::istringstream lines(theirs);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      TensorToWrite tensor;
      int dtype = 0;
      words >> tensor.name >> dtype;
      tensor.dtype = static_cast<DType>(dtype);
      for (int64_t size = 0; words >> size;) tensor.shape.push_back(size);
      if (names.insert(tensor.name).second) own.push_back(std::move(tensor));
    }
  }
  return own;
}

// All ranks write one file, or one for each place, which are merged: each what it holds alone, and of what all hold a piece
// in its turn.
FileSum write_together(const Executor& executor, std::vector<TensorToWrite> list, const std::vector<WeightPiece>& pieces,
                       const std::filesystem::path& path, std::span<std::byte> staging, const Tower& tower) {
  Communicator& ranks = executor.ranks()->all();
  list = of_all_stages(executor, std::move(list));
  const Places& places = executor.ranks()->places();
  std::optional<SafetensorsWriter> writer;
  const auto open = [&](Opening opening) { writer.emplace(path, std::move(list), kSafetensorsMetadata, opening); };
  if (places.keeps()) open(Opening::create);
  ranks.barrier();
  if (!places.keeps()) open(Opening::join);
  for (size_t i = 0; i < writer->order().size(); ++i) {
    const TensorEntry& entry = writer->order()[i];
    const bool turn = static_cast<int64_t>(i) % ranks.ranks() == ranks.rank();
    if (const size_t given = writer->given()[i]; given < pieces.size()) {
      if (!pieces[given].repeats)
        write_share(executor, pieces[given].part, entry, static_cast<int64_t>(i), *writer, staging);
    } else if (turn && tower.tensors.contains(entry.name)) {
      copy_tensor(*tower.base, *tower.tensors.at(entry.name),
                  [&](int64_t begin, std::span<const std::byte> bytes) { writer->write_at(entry, begin, bytes); });
    }
  }
  const std::vector<int64_t> written = all_ranks(ranks, writer->written());
  writer->close_joined(std::accumulate(written.begin(), written.end(), int64_t{0}));
  ranks.barrier();
  places.merge(ranks, path);
  return ranks.rank() == 0 ? checksum_file(path) : FileSum{};
}

// The pieces' names go into the file's list; with thousands of tensors a second copy of them counts.
FileSum write_pieces(const Executor& executor, std::vector<WeightPiece> pieces, const std::filesystem::path& path,
                     std::span<std::byte> staging, const Tower& tower = {}) {
  std::vector<TensorToWrite> list;
  list.reserve(pieces.size());
  for (WeightPiece& piece : pieces) {
    const Tensor tensor = tensor_of(executor, piece.part);
    list.push_back({std::move(piece.name), tensor.dtype, file_shape(executor, piece.part)});
  }
  for (const auto& [name, entry] : tower.tensors) list.push_back({name, entry->dtype(), entry->shape});
  if (executor.ranks() != nullptr) return write_together(executor, std::move(list), pieces, path, staging, tower);
  SafetensorsWriter writer(path, std::move(list));
  for (size_t i = 0; i < writer.order().size(); ++i) {
    if (const size_t given = writer.given()[i]; given < pieces.size()) {
      write_part(executor, pieces[given].part, writer, staging);
    } else if (tower.base != nullptr) {
      copy_tensor(*tower.base, *tower.tensors.at(writer.order()[i].name),
                  [&](int64_t, std::span<const std::byte> bytes) { writer.write(bytes); });
    }
  }
  return writer.finish();
}

FileSum save_model(const Executor& executor, const ModelSpec& model, const std::filesystem::path& path,
                   const std::string& base_model, std::span<std::byte> staging) {
  std::vector<WeightPiece> pieces = trained_pieces(executor, Naming::model);
  if (model.vision_parameters == 0) return write_pieces(executor, std::move(pieces), path, staging);
  const Checkpoint base(base_model);
  for (WeightPiece& piece : pieces) piece.name = find_tensor(model, base, piece.name).name;
  const Tower tower = tower_of(model, base);
  return write_pieces(executor, std::move(pieces), path, staging, tower);
}

// As PEFT compares them: by the end of a module's name, which a vision tower's modules would share.
std::vector<std::string> target_modules(const Executor& executor, const ModelSpec& model) {
  std::set<std::string> targets;
  for (const Weight& weight : executor.program().weights) {
    if (!weight.adapter || weight.origin != Origin::lora_a) continue;
    if (model.vision_parameters == 0) targets.insert(weight.parameter.module);
    for (int64_t layer = weight.parameter.first_layer; model.vision_parameters > 0 && layer < end_layer(executor, weight);
         ++layer) {
      const std::string name = weight.parameter.instance(layer);
      targets.insert(name.substr(0, name.size() - kLoraAEnd.size()));
    }
  }
  return {targets.begin(), targets.end()};
}

}  // namespace

std::map<std::string, FileSum> save_weights(const Executor& executor, const ModelSpec& model,
                                            const std::filesystem::path& directory, const Lora& lora,
                                            const std::string& base_model, std::span<std::byte> staging) {
  std::map<std::string, FileSum> sums;
  if (!is_adapter(executor)) {
    sums["model.safetensors"] = save_model(executor, model, directory / "model.safetensors", base_model, staging);
    return sums;
  }
  AdapterConfig config{.base_model = base_model, .r = lora.r, .lora_alpha = lora.alpha, .lora_dropout = lora.dropout};
  config.use_rslora = lora.use_rslora;
  config.use_dora = lora.use_dora;
  config.rank_pattern = lora.rank_pattern;
  config.alpha_pattern = lora.alpha_pattern;
  config.target_modules = target_modules(executor, model);
  config.modules_to_save = lora.modules_to_save;
  config.fan_in_fan_out = std::any_of(executor.program().weights.begin(), executor.program().weights.end(),
                                      [](const Weight& w) { return w.parameter.input_features_first; });
  if (is_first(executor)) {
    write_file_atomically(directory / "adapter_config.json", format_adapter_config(config));
    sums["adapter_config.json"] = checksum_file(directory / "adapter_config.json");
  }
  const char* name = "adapter_model.safetensors";
  sums[name] = write_pieces(executor, trained_pieces(executor, Naming::adapter), directory / name, staging);
  return sums;
}

std::map<std::string, FileSum> save_state(const Executor& executor, const std::filesystem::path& directory,
                                          std::span<std::byte> staging) {
  return {{kStateFile, write_pieces(executor, state_pieces(executor), directory / kStateFile, staging)}};
}

}  // namespace snug
