#pragma once
// Data sets as Hugging Face's `datasets` leaves them on disk: what save_to_disk wrote, and its cache. Their Arrow files are
// found here and read elsewhere. Source: datasets/arrow_dataset.py and dataset_dict.py (save_to_disk), builder.py (the
// cache's folders), naming.py (its files).

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

// The .arrow files, in their order, of a directory that save_to_disk made (state.json; of a DatasetDict, dataset_dict.json,
// the split "train" or the only one), or of one in the cache (dataset_info.json beside them; the same split). None where the
// directory is neither. Throws Error if several splits are there and none is called "train", if the rows stand in the order
// of an indices mapping, or if a part is missing.
std::optional<std::vector<std::filesystem::path>> saved_dataset_files(const std::filesystem::path& directory);

// HF_DATASETS_CACHE, else datasets below HF_HOME or what stands for it.
std::filesystem::path datasets_cache();

// True for "owner/name" that has no data file's ending.
bool is_dataset_name(std::string_view name);

// The directory in the cache of the data set "owner/name". Throws Error if it is not there, with the command that downloads
// it, or if several of its configurations or versions are.
std::filesystem::path cached_dataset(const std::string& name);

}  // namespace snug
