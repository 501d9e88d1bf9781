#pragma once
// Checkpoints that Hugging Face's tools have downloaded to this machine (huggingface_hub, "Understand caching"): a directory
// for each repository, models--OWNER--NAME, in which refs/main holds a commit and snapshots/COMMIT its files. snug reads
// there and downloads nothing.

#include <filesystem>
#include <optional>
#include <string>

namespace snug {

// HF_HUB_CACHE, else HF_HOME/hub, else huggingface/hub below XDG_CACHE_HOME or ~/.cache.
std::filesystem::path hub_cache();

// The snapshot of the main branch of "owner/name" or "name", if it is there and holds a config.json.
std::optional<std::filesystem::path> cached_snapshot(const std::string& repository);

// What a checkpoint is called: the last part of its path, of a snapshot the name of its repository.
std::string checkpoint_name(const std::filesystem::path& directory);

// `model` itself where it is a directory, else its snapshot. Throws Error with the command that downloads it; `purpose`:
// what needs it, such as "training".
std::filesystem::path local_checkpoint(const std::string& model, const std::string& purpose);

}  // namespace snug
