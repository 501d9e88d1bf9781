#include "train/run_state.h"

#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/version.h"
#include "comm/agree.h"
#include "formats/atomic_directory.h"
#include "formats/manifest.h"
#include "formats/model_card.h"
#include "recipe/keys.h"
#include "run/weight_files.h"

namespace snug {

namespace fs = std::filesystem;

namespace {

constexpr const char* kModelFiles[] = {"config.json",
                                       "generation_config.json",
                                       "tokenizer.json",
                                       "tokenizer_config.json",
                                       "special_tokens_map.json",
                                       "vocab.json",
                                       "merges.txt",
                                       "added_tokens.json",
                                       "chat_template.jinja"};

// A fully fine-tuned model stands on its own: its configuration and tokenizer come along.
void copy_model_files(const fs::path& model, const fs::path& directory, std::map<std::string, FileSum>& sums) {
  for (const char* name : kModelFiles) {
    if (!is_there(model / name)) continue;
    write_file_atomically(directory / name, read_text_file(model / name));
    sums[name] = checksum_file(directory / name);
  }
}

std::map<std::string, FileSum> write_result(const Executor& executor, const Plan& plan, const fs::path& directory,
                                            std::span<std::byte> staging) {
  std::map<std::string, FileSum> sums =
      save_weights(executor, plan.model, directory, plan.recipe.lora, plan.recipe.model, staging);
  if (plan.recipe.method == Method::full && (executor.ranks() == nullptr || executor.ranks()->rank() == 0))
    copy_model_files(plan.recipe.model, directory, sums);
  return sums;
}

// What a resumed run must share with the run that was stopped.
std::map<std::string, StateValue> identity_of(const Plan& plan, const DataIdentity& data) {
  Recipe r = plan.recipe;
  r.pages_states = false;  // where states lie says nothing of them
  return {{"method", std::string(r.method == Method::full ? "full" : "lora")},
          {"trainable_parameters", plan.program.trainable_parameters()},
          {"per_device_train_batch_size", r.batch},
          {"gradient_accumulation_steps", r.accumulation * r.parallel.mesh().batches()},  // of all ranks
          {"max_length", plan.program.seq_len},
          {"optim", find_key("optim")->get(r)},
          {"seed", static_cast<int64_t>(r.seed)},
          {"shuffle", int64_t{r.shuffle ? 1 : 0}},
          {"data_rows", data.rows},
          {"data_tokens", data.tokens}};
}

// What torch.amp.GradScaler keeps, and when it was last of use.
constexpr std::pair<const char*, Scalar> kScalerState[] = {{"loss_scale", Scalar::loss_scale},
                                                           {"loss_scale_steps", Scalar::steps_at_scale},
                                                           {"loss_scale_skips", Scalar::skips_in_a_row}};

std::string text_of(const StateValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return std::to_string(std::get<double>(value));
}

std::optional<int64_t> step_of(const fs::path& directory) {
  const std::string name = directory.filename().string();
  constexpr std::string_view kPrefix = "checkpoint-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return step;
}

// Oldest first. Those that have a manifest were written whole.
std::vector<std::pair<int64_t, fs::path>> finished_checkpoints(const fs::path& output_dir) {
  std::vector<std::pair<int64_t, fs::path>> found;
  // A directory that cannot be read is an error: a run that took it for an empty one would start anew.
  for (const fs::path& path : entries_of(output_dir))
    if (const auto step = step_of(path); step && is_there(path / kManifestName)) found.emplace_back(*step, path);
  std::sort(found.begin(), found.end());
  return found;
}

void remove_checkpoint(const fs::path& checkpoint) {
  // Killed on the way, it leaves something unfinished, not half of a checkpoint.
  const fs::path condemned = temporary_name(checkpoint);
  rename_path(checkpoint, condemned);
  std::error_code error;
  fs::remove_all(condemned, error);
  if (error) throw_errno("cannot be removed", checkpoint, error.value());
}

// The result's files and its card, from where they were written to the output directory.
void put_in_place(const fs::path& from, const fs::path& output, std::map<std::string, FileSum> files,
                  const std::string& card) {
  const fs::path readme = output / "README.md";
  if (!is_there(readme) || is_own_card(read_text_file(readme))) {
    write_file_atomically(from / "README.md", card);
    files["README.md"] = {};
  }
  for (const auto& [name, sum] : files) sync_path(from / name);
  for (const auto& [name, sum] : files) rename_path(from / name, output / name);
  sync_path(output);
}

}  // namespace

namespace {

// A directory that appears all at once: the first rank's, in which all write who see it. Others write in one of their own,
// which goes when what it holds has been merged into the first's.
class SharedDirectory {
 public:
  SharedDirectory(const Executor& executor, const fs::path& target) {
    const RankRings* const ranks = executor.ranks();
    lasts_ = ranks == nullptr || ranks->rank() == 0;
    if (ranks == nullptr || ranks->places().keeps()) own_.emplace(target);
    path_ = own_ ? own_->path() : fs::path();
    if (ranks != nullptr)
      path_ = texts_of_ranks(ranks->all(), path_.string()).at(static_cast<size_t>(ranks->places().keeper()));
  }

  const fs::path& path() const { return path_; }
  bool lasts() const { return lasts_; }
  void commit() { own_->commit(); }

 private:
  bool lasts_ = false;
  std::optional<AtomicDirectory> own_;
  fs::path path_;
};

}  // namespace

void save_checkpoint(Executor& executor, const Plan& plan, const DataIdentity& data, const Progress& progress,
                     std::span<std::byte> staging) {
  SharedDirectory directory(executor, fs::path(plan.recipe.output_dir) / ("checkpoint-" + std::to_string(progress.step)));
  Manifest manifest{.version = kVersion, .step = progress.step};
  manifest.files = write_result(executor, plan, directory.path(), staging);
  if (!plan.recipe.save_only_model) manifest.files.merge(save_state(executor, directory.path(), staging));
  if (!directory.lasts()) return;
  manifest.state = identity_of(plan, data);
  if (plan.recipe.fp16) {
    manifest.state["updates"] = progress.updates;
    for (const auto& [key, scalar] : kScalerState) manifest.state[key] = executor.scalar(scalar);
  }
  write_manifest(directory.path(), manifest);
  directory.commit();
}

void save_result(const Executor& executor, const Plan& plan, const std::string& card, std::span<std::byte> staging) {
  const fs::path output = plan.recipe.output_dir;
  const SharedDirectory directory(executor, output / "result");
  const std::map<std::string, FileSum> files = write_result(executor, plan, directory.path(), staging);
  if (directory.lasts()) put_in_place(directory.path(), output, files, card);
}

void publish_checkpoint(const Plan& plan, const fs::path& checkpoint, const std::string& card) {
  const fs::path output = plan.recipe.output_dir;
  const AtomicDirectory directory(output / "result");
  std::map<std::string, FileSum> files = verify_manifest(checkpoint).files;
  files.erase(kStateFile);
  for (const auto& [name, sum] : files) {
    std::error_code error;
    fs::copy_file(checkpoint / name, directory.path() / name, error);
    if (error) throw_errno("cannot be copied", checkpoint / name, error.value());
  }
  put_in_place(directory.path(), output, files, card);
}

std::optional<fs::path> newest_checkpoint(const fs::path& output_dir) {
  const auto found = finished_checkpoints(output_dir);
  return found.empty() ? std::nullopt : std::optional(found.back().second);
}

void remove_checkpoints(const fs::path& output_dir) {
  while (const auto checkpoint = newest_checkpoint(output_dir)) remove_checkpoint(*checkpoint);
}

void remove_old_checkpoints(const fs::path& output_dir, int64_t keep, int64_t newest, int64_t best) {
  const auto found = finished_checkpoints(output_dir);
  auto surplus = static_cast<int64_t>(found.size()) - std::max<int64_t>(1, keep);
  for (const auto& [step, path] : found) {
    if (step == newest || step == best || surplus <= 0) continue;
    remove_checkpoint(path);
    --surplus;
  }
}

Progress resume(Executor& executor, const Plan& plan, const DataIdentity& data, const fs::path& checkpoint,
                std::span<std::byte> staging) {
  const Manifest manifest = verify_manifest(checkpoint);
  for (const auto& [key, value] : identity_of(plan, data)) {
    const auto found = manifest.state.find(key);
    const std::string absent = key == "optim" ? "adamw_torch" : "missing";  // once it was the only one
    const std::string before = found == manifest.state.end() ? absent : text_of(found->second);
    if (before != text_of(value))
      throw Error(key + " was " + before + " and is now " + text_of(value), checkpoint.string(),
                  "resume with the same recipe and data, or start in another --output-dir");
  }
  if (!manifest.files.contains(kStateFile))
    throw Error("the checkpoint holds weights alone, as save_only_model asks for", checkpoint.string(),
                "give --overwrite-output-dir to start anew");
  load_state(executor, plan.model, checkpoint, plan.recipe.lora, staging);
  Progress progress{manifest.step, manifest.step};
  if (!plan.recipe.fp16 || !manifest.state.contains("updates")) return progress;  // of a run in another precision
  progress.updates = manifest.integer("updates");
  for (const auto& [key, scalar] : kScalerState) executor.set_scalar(scalar, manifest.number(key));
  if (progress.updates < 0 || progress.updates > progress.step || !(executor.scalar(Scalar::loss_scale) > 0.0))
    throw Error("updates or loss_scale make no sense", (checkpoint / kManifestName).string(),
                "resume from another checkpoint");
  return progress;
}

UniqueFd lock_directory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw_errno("the directory cannot be created", directory, error.value());
  const fs::path path = directory / ".lock";
  UniqueFd fd = open_to_append(path);
  // What a run that was killed just now has started may live a moment longer, and its lock with it.
  constexpr std::chrono::milliseconds kPatience(1000), kBetween(20);
  for (std::chrono::milliseconds waited{0}; waited <= kPatience; waited += kBetween) {
    if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
    if (errno != EWOULDBLOCK) throw_errno("the file cannot be locked", path, errno);
    std::this_thread::sleep_for(kBetween);
  }
  throw Error("another snug is training here", directory.string(), "wait for it, or give another --output-dir");
}

}  // namespace snug
