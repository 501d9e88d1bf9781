#pragma once
// Decompression of pages. The libraries check their own formats; sizes are checked here.

#include <cstddef>
#include <cstdint>
#include <span>

namespace snug::parquet {

enum class Codec : uint8_t { uncompressed = 0, snappy = 1, gzip = 2, lzo = 3, brotli = 4, lz4 = 5, zstd = 6, lz4_raw = 7 };

// Throws Error, naming the codec and the way out, if pages in it cannot be read.
void require_supported(Codec codec);

// Fills `output` from `input`, whose decompressed size it must be exactly. Throws Error.
void decompress(Codec codec, std::span<const std::byte> input, std::span<std::byte> output);

}  // namespace snug::parquet
