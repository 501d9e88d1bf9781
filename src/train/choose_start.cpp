#include "train/choose_start.h"

#include "base/error.h"
#include "formats/atomic_directory.h"
#include "train/run_state.h"

namespace snug {

std::optional<std::filesystem::path> choose_start(const Recipe& recipe, Reporter& reporter) {
  const std::filesystem::path output = recipe.output_dir;
  remove_temporaries(output);
  std::optional<std::filesystem::path> newest = newest_checkpoint(output);
  const std::string& wish = recipe.resume_from_checkpoint;
  if (!wish.empty() && wish != "true" && wish != "false") return wish;
  if (wish == "true" && !newest) reporter.nothing_to_resume(output);
  if (wish == "true") return newest;
  if (newest && !recipe.overwrite_output_dir)
    throw Error("holds " + newest->filename().string() + " of an earlier run", output.string(),
                "add --resume-from-checkpoint to go on, or --overwrite-output-dir to start anew");
  return std::nullopt;
}

}  // namespace snug
