#pragma once
// The row file: which documents make a row of training, packed or padded to buckets, for all documents or for a part of
// them. Knows their sizes alone.

#include <filesystem>
#include <vector>

#include "data/documents.h"

namespace snug {

// Arranges the documents of `chosen` (all, if it is null) as `summary` says (seq_len, packing, buckets) and writes them;
// completes the summary's counts of documents, tokens and rows.
void write_rows(const std::filesystem::path& directory, const TokenHeader& tokens, const Documents& documents,
                const std::vector<int32_t>* chosen, DatasetSummary& summary);

}  // namespace snug
