#include "model/hub_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>

#include "base/error.h"
#include "base/hugging_face.h"
#include "model/catalogue.h"

namespace snug {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "models--", kSnapshots = "snapshots";

bool is_commit(std::string_view text) {
  return text.size() == 40 && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

}  // namespace

fs::path hub_cache() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const std::string cache = environment(name); !cache.empty()) return cache;
  return hugging_face_home() / "hub";
}

std::optional<fs::path> cached_snapshot(const std::string& repository) {
  if (!is_repository(repository)) return std::nullopt;
  std::string folder(kPrefix);
  for (const char c : repository) folder += c == '/' ? std::string("--") : std::string(1, c);
  const fs::path directory = hub_cache() / folder;
  std::string commit;
  std::ifstream(directory / "refs" / "main") >> commit;
  if (!is_commit(commit)) return std::nullopt;
  std::error_code error;
  fs::path snapshot = directory / kSnapshots / commit;
  if (!fs::is_regular_file(snapshot / "config.json", error)) return std::nullopt;
  return snapshot;
}

std::string checkpoint_name(const fs::path& directory) {
  const fs::path snapshots = directory.parent_path();
  const std::string repository = snapshots.parent_path().filename().string();
  if (snapshots.filename() == kSnapshots && repository.starts_with(kPrefix))
    return repository.substr(std::max(repository.rfind("--"), kPrefix.size() - 2) + 2);
  return directory.filename().string();
}

fs::path local_checkpoint(const std::string& model, const std::string& purpose) {
  std::error_code error;
  if (fs::is_directory(model, error)) return model;
  if (!fs::exists(model, error)) {
    if (const auto snapshot = cached_snapshot(model)) return *snapshot;
    const bool published = is_repository(model) && model.find('/') != std::string::npos;
    if (!published) resolve_model(model);  // says if there is no such model at all
    throw Error(fmt::format("{} needs weights and a tokenizer; snug downloads nothing, and they are not in {}", purpose,
                            hub_cache().string()),
                model,
                published ? fmt::format("run `hf download {}`, or give the directory of a checkpoint", model)
                          : "give the directory of a checkpoint");
  }
  throw Error(fmt::format("{} needs weights and a tokenizer", purpose), model, "give the directory of a checkpoint");
}

}  // namespace snug
