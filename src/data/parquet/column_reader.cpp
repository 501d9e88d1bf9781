#include "data/parquet/column_reader.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/checked.h"
#include "base/quote.h"
#include "data/parquet/damaged.h"

namespace snug::parquet {
namespace {

constexpr int64_t kHeaderWindow = int64_t{8} << 10;
constexpr int64_t kMostHeader = int64_t{16} << 20;
constexpr int kMostEmptyPages = 64;  // one behind the other

// Room for `size` bytes; grows only, so that pages of one size cost one clearing.
std::span<std::byte> room(std::vector<std::byte>& buffer, int64_t size) {
  if (static_cast<int64_t>(buffer.size()) < size) buffer.resize(static_cast<size_t>(size));
  return std::span(buffer).first(static_cast<size_t>(size));
}

int width_of(int most) { return static_cast<int>(std::bit_width(static_cast<unsigned>(most))); }

Bytes take(Bytes& rest, int64_t size) {
  if (size < 0 || size > static_cast<int64_t>(rest.size())) damaged("a page ends too early");
  const Bytes front = rest.first(static_cast<size_t>(size));
  rest = rest.subspan(static_cast<size_t>(size));
  return front;
}

int64_t length_prefix(Bytes& rest) {
  uint32_t length = 0;
  std::memcpy(&length, take(rest, sizeof length).data(), sizeof length);
  return length;
}

}  // namespace

void ColumnReader::Levels::open(Encoding encoding, int highest, Bytes bytes) {
  most = highest;
  legacy = encoding == Encoding::bit_packed;
  if (legacy) {
    bits = BigEndianBits(bytes, width_of(most));
  } else {
    runs = RunDecoder(bytes, width_of(most));
  }
}

int ColumnReader::Levels::next() {
  if (most == 0) return 0;
  const uint32_t level = legacy ? bits.next() : runs.next();
  if (level > static_cast<uint32_t>(most)) damaged("a level is above the highest of its column");
  return static_cast<int>(level);
}

ColumnReader::ColumnReader(const InputFile& file, std::string name, const ColumnChunk& chunk, const Node& leaf,
                           int64_t most_page_bytes)
    : file_(file),
      name_(std::move(name)),
      chunk_(chunk),
      type_(leaf.type),
      type_length_(leaf.type_length),
      most_page_bytes_(most_page_bytes),
      offset_(chunk.first_page),
      end_(checked_add(chunk.first_page, chunk.bytes)),
      values_left_(chunk.values) {
  if (!leaf.unsupported.empty()) unsupported("column " + quote(name_) + " of type " + leaf.unsupported);
  if (chunk.encrypted) unsupported("encryption (column " + quote(name_) + ")");
  if (chunk.elsewhere) unsupported("a column in another file (" + quote(name_) + ")");
  if (chunk.type != leaf.type) damaged("column " + quote(name_) + " has two types");
  require_supported(chunk.codec);
  if (end_ > file.size()) damaged("column " + quote(name_) + " lies behind its end");
  repetitions_.most = leaf.repetition_levels;
  definitions_.most = leaf.defined_at;
  read_entry();
}

Scalar ColumnReader::value() { return decoder_->next(); }

void ColumnReader::advance() {
  if (at_end_) damaged("column " + quote(name_) + " has fewer values than the others");
  read_entry();
}

void ColumnReader::read_entry() {
  if (values_left_ == 0) {
    at_end_ = true;
    repetition_ = definition_ = 0;
    return;
  }
  try {
    for (int pages = 0; page_left_ == 0; ++pages) {
      if (pages > kMostEmptyPages) damaged("it has many pages without values");
      load_page();
    }
    repetition_ = repetitions_.next();
    definition_ = definitions_.next();
  } catch (const Error& error) {
    throw Error(error.problem() + " (column " + quote(name_) + ")", error.where(), error.mend());
  }
  --page_left_;
  --values_left_;
}

// The header of a page has no length of its own: a window that turns out too small is read anew.
PageHeader ColumnReader::next_header() {
  const int64_t left = end_ - offset_;
  if (left <= 0) damaged("it has fewer values than it declares");
  for (int64_t window = kHeaderWindow;; window *= 8) {
    const std::span<std::byte> bytes = room(header_, std::min(window, left));
    file_.read_at(bytes, offset_);
    try {
      return read_page_header(bytes);
    } catch (const Error&) {
      if (window >= left || window >= kMostHeader) throw;
    }
  }
}

void ColumnReader::load_page() {
  const PageHeader header = next_header();
  offset_ += header.header_bytes;
  if (header.compressed_bytes > end_ - offset_) damaged("a page goes on behind the end of its column");
  if (header.kind != PageKind::index) {
    if (header.uncompressed_bytes > most_page_bytes_ || header.compressed_bytes > most_page_bytes_)
      unsupported("a page of more than " + std::to_string(most_page_bytes_ >> 20) + " MiB");
    read_body(header);
  }
  offset_ += header.compressed_bytes;
}

void ColumnReader::read_body(const PageHeader& header) {
  const std::span<std::byte> bytes = room(compressed_, header.compressed_bytes);
  file_.read_at(bytes, offset_);
  if (header.crc && *header.crc != crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())))
    damaged("a page's checksum is wrong");
  switch (header.kind) {
    case PageKind::dictionary: return open_dictionary(header);
    case PageKind::data: return open_data(header);
    case PageKind::data_v2: return open_data_v2(header);
    case PageKind::index: return;
  }
}

// `bytes` bytes out of `compressed`; where nothing is compressed, those themselves.
Bytes ColumnReader::unpack(const PageHeader& header, Bytes compressed, int64_t bytes) {
  const bool plain = chunk_.codec == Codec::uncompressed || (header.kind == PageKind::data_v2 && !header.compressed);
  if (plain && static_cast<int64_t>(compressed.size()) != bytes) damaged("a page has not the size that it declares");
  if (plain) return compressed;
  const std::span<std::byte> output = room(page_, bytes);
  decompress(chunk_.codec, compressed, output);
  return output;
}

void ColumnReader::open_dictionary(const PageHeader& header) {
  if (has_dictionary_) damaged("it has two dictionaries");
  if (header.encoding != Encoding::plain && header.encoding != Encoding::plain_dictionary)
    unsupported("a dictionary that is not plain");
  const Bytes bytes = unpack(header, room(compressed_, header.compressed_bytes), header.uncompressed_bytes);
  dictionary_page_.assign(bytes.begin(), bytes.end());
  dictionary_ = read_dictionary(dictionary_page_, header.values, type_, type_length_);
  has_dictionary_ = true;
}

void ColumnReader::open_data(const PageHeader& header) {
  Bytes rest = unpack(header, room(compressed_, header.compressed_bytes), header.uncompressed_bytes);
  const auto open = [&](Levels& levels, Encoding encoding) {
    if (levels.most == 0) return;
    if (encoding != Encoding::rle && encoding != Encoding::bit_packed) unsupported("an encoding of levels");
    const int64_t bits = header.values * width_of(levels.most);
    const int64_t bytes = encoding == Encoding::rle ? length_prefix(rest) : (bits + 7) / 8;
    levels.open(encoding, levels.most, take(rest, bytes));
  };
  open(repetitions_, header.repetition_encoding);
  open(definitions_, header.definition_encoding);
  open_values(header, rest);
}

// Levels stand before the compressed part.
void ColumnReader::open_data_v2(const PageHeader& header) {
  Bytes rest = room(compressed_, header.compressed_bytes);
  const Bytes repetitions = take(rest, header.repetition_bytes);
  const Bytes definitions = take(rest, header.definition_bytes);
  if (repetitions_.most > 0) repetitions_.open(Encoding::rle, repetitions_.most, repetitions);
  if (definitions_.most > 0) definitions_.open(Encoding::rle, definitions_.most, definitions);
  const int64_t bytes = header.uncompressed_bytes - header.repetition_bytes - header.definition_bytes;
  if (bytes < 0) damaged("a page has not the size that it declares");
  open_values(header, rest.empty() ? rest : unpack(header, rest, bytes));
}

void ColumnReader::open_values(const PageHeader& header, Bytes values) {
  if (header.values > values_left_) damaged("it has more values than it declares");
  decoder_ =
      make_decoder(header.encoding, values, header.values, type_, type_length_, has_dictionary_ ? &dictionary_ : nullptr);
  page_left_ = header.values;
}

}  // namespace snug::parquet
