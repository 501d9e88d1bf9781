#include "data/arrow/message.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "data/arrow/damaged.h"

namespace snug::arrow {
namespace {

constexpr int64_t kMostHeader = int64_t{64} << 20;
constexpr int32_t kContinues = -1;
constexpr int64_t kWord = sizeof(int32_t);
constexpr std::string_view kFileMagic = "ARROW1";

bool has_magic(const InputFile& file, int64_t offset) {
  std::array<char, kFileMagic.size()> bytes{};
  file.read_at(std::as_writable_bytes(std::span(bytes)), offset);
  return std::string_view(bytes.data(), bytes.size()) == kFileMagic;
}

void require_version(int version) {
  constexpr int kV4 = 3, kV5 = 4;
  if (version != kV4 && version != kV5) unsupported("metadata version V" + std::to_string(version + 1));
}

// Moving the bytes leaves them where the header points to.
Message parse(std::vector<std::byte> bytes) {
  enum Place : uint8_t { kVersion = 0, kKind = 1, kHeader = 2, kBodyLength = 3 };
  const Table root = Table::root(bytes);
  require_version(root.number<int16_t>(kVersion, 0));
  const int kind = root.number<uint8_t>(kKind, 0);
  if (kind < 1 || kind > 3) unsupported("a message of kind " + std::to_string(kind));
  const std::optional<Table> header = root.table(kHeader);
  if (!header) damaged("a message has no header");
  const auto body_bytes = root.number<int64_t>(kBodyLength, 0);
  return {std::move(bytes), static_cast<MessageKind>(kind), *header, 0, body_bytes};
}

}  // namespace

MessageReader::MessageReader(const InputFile& file) : file_(file), size_(file.size()) {
  if (size_ >= static_cast<int64_t>(kFileMagic.size()) && has_magic(file_, 0)) read_footer();
}

// At the end of the file: the footer, its size, the magic. Not every writer's messages are a stream by themselves (polars).
void MessageReader::read_footer() {
  enum Place : uint8_t { kVersion = 0, kSchema = 1, kDictionaries = 2, kBatches = 3 };
  constexpr auto kMagic = static_cast<int64_t>(kFileMagic.size());
  constexpr size_t kBlock = 24;
  int32_t size = 0;
  const int64_t end = size_ - kMagic - kWord;
  if (end < kMagic || !has_magic(file_, size_ - kMagic)) damaged("it is cut off");
  file_.read_at(std::as_writable_bytes(std::span(&size, 1)), end);
  if (size < 0 || size > end - kMagic) damaged("its footer is longer than the file");
  if (size > kMostHeader) unsupported("a footer of more than 64 MiB");
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  file_.read_at(bytes, end - size);
  const Table footer = Table::root(bytes);
  require_version(footer.number<int16_t>(kVersion, 0));
  const std::optional<Table> schema = footer.table(kSchema);
  if (!schema) damaged("its footer has no schema");
  for (const int place : {kDictionaries, kBatches}) {
    int64_t last = -1;
    for (Bytes blocks = footer.structures(place, kBlock); !blocks.empty(); blocks = blocks.subspan(kBlock)) {
      int64_t offset = 0;
      std::memcpy(&offset, blocks.data(), sizeof offset);
      if (offset <= last || offset > end) damaged("its footer names messages out of order");
      last = offset;
      blocks_.push_back(offset);
    }
  }
  std::ranges::reverse(blocks_);
  has_footer_ = true;
  schema_ = Message{std::move(bytes), MessageKind::schema, *schema, 0, 0};
}

std::optional<Message> MessageReader::next() {
  if (!has_footer_) return read_message();
  if (schema_) return std::exchange(schema_, std::nullopt);
  if (blocks_.empty()) return std::nullopt;
  offset_ = blocks_.back();
  blocks_.pop_back();
  std::optional<Message> message = read_message();
  if (!message) damaged("its footer names a message that is not there");
  return message;
}

// The message at `offset_`, which moves behind it.
std::optional<Message> MessageReader::read_message() {
  const auto word = [&] {
    if (size_ - offset_ < kWord) damaged("it ends without an end mark, so it may be cut off");
    int32_t value = 0;
    file_.read_at(std::as_writable_bytes(std::span(&value, 1)), offset_);
    offset_ += kWord;
    return value;
  };
  int64_t size = word();
  if (size == kContinues) size = word();  // before Arrow 0.15 the size stood alone
  if (size == 0) return std::nullopt;
  if (size < 0 || size > size_ - offset_) damaged("a header is longer than the file");
  if (size > kMostHeader) unsupported("a header of more than 64 MiB");
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  file_.read_at(bytes, offset_);
  Message message = parse(std::move(bytes));
  message.body = offset_ + size;
  if (message.body_bytes < 0 || message.body_bytes > size_ - message.body) damaged("a message is longer than the file");
  offset_ = message.body + message.body_bytes;
  return message;
}

}  // namespace snug::arrow
