#include "data/parquet/compression.h"

#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "data/parquet/damaged.h"

namespace snug::parquet {
namespace {

constexpr const char* kBadPage = "a compressed page cannot be unpacked";

void unpack_snappy(std::span<const std::byte> input, std::span<std::byte> output) {
  const char* const bytes = reinterpret_cast<const char*>(input.data());
  size_t length = 0;
  if (!snappy::GetUncompressedLength(bytes, input.size(), &length) || length != output.size()) damaged(kBadPage);
  if (!snappy::RawUncompress(bytes, input.size(), reinterpret_cast<char*>(output.data()))) damaged(kBadPage);
}

// One or more gzip members, or a zlib stream.
void unpack_gzip(std::span<const std::byte> input, std::span<std::byte> output) {
  z_stream stream{};
  constexpr int kAnyHeader = 15 + 32;
  if (inflateInit2(&stream, kAnyHeader) != Z_OK) throw Error("zlib has no memory");
  // zlib takes a pointer to non-const and does not write through it. Both sizes are bounded far below 4 GiB.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input.data()));
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(output.data());
  stream.avail_out = static_cast<uInt>(output.size());
  int status = Z_OK;
  do {
    status = inflate(&stream, Z_FINISH);
  } while (status == Z_STREAM_END && stream.avail_in > 0 && stream.avail_out > 0 && inflateReset(&stream) == Z_OK);
  const bool whole = status == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  if (!whole) damaged(kBadPage);
}

void unpack_zstd(std::span<const std::byte> input, std::span<std::byte> output) {
  const size_t size = ZSTD_decompress(output.data(), output.size(), input.data(), input.size());
  if (ZSTD_isError(size) != 0 || size != output.size()) damaged(kBadPage);
}

}  // namespace

void require_supported(Codec codec) {
  switch (codec) {
    case Codec::uncompressed:
    case Codec::snappy:
    case Codec::gzip:
    case Codec::zstd: return;
    case Codec::lzo: unsupported("compression LZO");
    case Codec::brotli: unsupported("compression BROTLI");
    case Codec::lz4: unsupported("compression LZ4");
    case Codec::lz4_raw: unsupported("compression LZ4_RAW");
  }
  unsupported("a compression that is not in Parquet's list");
}

void decompress(Codec codec, std::span<const std::byte> input, std::span<std::byte> output) {
  if (output.empty()) return;  // some writers give no bytes at all for a page without values
  switch (codec) {
    case Codec::uncompressed:
      if (input.size() != output.size()) damaged("a page has not the size that it declares");
      std::memcpy(output.data(), input.data(), input.size());
      return;
    case Codec::snappy: return unpack_snappy(input, output);
    case Codec::gzip: return unpack_gzip(input, output);
    case Codec::zstd: return unpack_zstd(input, output);
    default: require_supported(codec);
  }
}

}  // namespace snug::parquet
