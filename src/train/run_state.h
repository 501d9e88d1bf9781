#pragma once
// checkpoint-N directories: what a run needs to go on as if it had never stopped. Written atomically with a manifest of
// checksums; state stands under logical, unsharded tensor names.

#include <filesystem>
#include <optional>
#include <string>

#include "formats/file.h"
#include "plan/plan.h"
#include "run/executor.h"

namespace snug {

// What must be the same for a resumed run to see the same data in the same order.
struct DataIdentity {
  int64_t rows = 0, tokens = 0;
};

// How far a run is.
struct Progress {
  int64_t step = 0;     // steps done
  int64_t updates = 0;  // of the weights: steps that were not skipped
};

// One run at a time in an output directory, which is made where it is missing: held until the result is closed. Waits a
// second for one that was killed just now, then throws Error.
UniqueFd lock_directory(const std::filesystem::path& directory);

// Writes output_dir/checkpoint-STEP, in fp16 with the loss scale and its counts. A fully fine-tuned checkpoint takes
// config.json and tokenizer files along from the model's directory, so that it loads in Hugging Face's libraries.
// What lies in the far home goes through `staging`.
void save_checkpoint(Executor& executor, const Plan& plan, const DataIdentity& data, const Progress& progress,
                     std::span<std::byte> staging);

// Writes the result of the run (adapter or model) into output_dir itself, and `card` as its README.md; one that somebody
// wrote or changed stays.
void save_result(const Executor& executor, const Plan& plan, const std::string& card, std::span<std::byte> staging);

// The result of the run is what `checkpoint` holds: its files but the optimizer's, copied past the arena.
void publish_checkpoint(const Plan& plan, const std::filesystem::path& checkpoint, const std::string& card);

// The newest checkpoint of output_dir that has a manifest, so was written whole; resume() verifies it.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& output_dir);

// Removes every checkpoint of output_dir, the newest first; a run that is killed on the way leaves no half of one.
void remove_checkpoints(const std::filesystem::path& output_dir);

// Removes the oldest finished checkpoints until `keep` are left, never checkpoint-NEWEST, which was just written, nor
// checkpoint-BEST. Killed on the way it leaves something unfinished, which the next run removes.
void remove_old_checkpoints(const std::filesystem::path& output_dir, int64_t keep, int64_t newest, int64_t best = -1);

// Verifies every file, restores weights and state, returns how far the run was. Throws Error if the checkpoint is of another
// recipe.
Progress resume(Executor& executor, const Plan& plan, const DataIdentity& data, const std::filesystem::path& checkpoint,
                std::span<std::byte> staging);

}  // namespace snug
