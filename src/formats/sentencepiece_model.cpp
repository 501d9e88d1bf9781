#include "formats/sentencepiece_model.h"

#include <cstring>
#include <optional>

#include "base/error.h"

namespace snug {

namespace {

constexpr size_t kMostPieces = 1 << 24;

struct Field {
  uint64_t number = 0;
  uint64_t value = 0;      // of a varint
  std::string_view bytes;  // of anything else
};

// The fields of a protobuf message one after another.
class FieldReader {
 public:
  FieldReader(std::string_view bytes, const std::string& where) : rest_(bytes), where_(where) {}

  std::optional<Field> next() {
    if (rest_.empty()) return std::nullopt;
    const uint64_t key = varint();
    Field field{.number = key >> 3};
    switch (key & 7) {
      case 0: field.value = varint(); break;
      case 1: field.bytes = take(8); break;
      case 2: field.bytes = take(varint()); break;
      case 5: field.bytes = take(4); break;
      default: refuse();
    }
    return field;
  }

 private:
  [[noreturn]] void refuse() const {
    throw Error("is not a SentencePiece model, or is cut short", where_, "fetch it again");
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) refuse();
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    refuse();
  }

  std::string_view take(uint64_t count) {
    if (count > rest_.size()) refuse();
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
  const std::string& where_;
};

SentencePiece piece_of(std::string_view bytes, const std::string& where) {
  SentencePiece piece;
  FieldReader message(bytes, where);
  while (const auto field = message.next()) {
    if (field->number == 1) piece.text = field->bytes;
    if (field->number == 2 && field->bytes.size() == 4) std::memcpy(&piece.score, field->bytes.data(), 4);
    if (field->number == 3) piece.type = static_cast<int32_t>(field->value);
  }
  if (piece.type < 1 || piece.type > 6) throw Error("holds a piece of a kind that is not known", where);
  return piece;
}

bool dummy_prefix_of(std::string_view bytes, const std::string& where) {
  bool prefix = true;
  FieldReader message(bytes, where);
  while (const auto field = message.next())
    if (field->number == 3) prefix = field->value != 0;
  return prefix;
}

}  // namespace

SentencePieceModel parse_sentencepiece_model(std::string_view bytes, const std::string& where) {
  SentencePieceModel model;
  FieldReader message(bytes, where);
  while (const auto field = message.next()) {
    if (field->number == 1) {
      if (model.pieces.size() == kMostPieces) throw Error("holds too many pieces", where);
      model.pieces.push_back(piece_of(field->bytes, where));
    }
    if (field->number == 3) model.add_dummy_prefix = dummy_prefix_of(field->bytes, where);
  }
  if (model.pieces.empty()) throw Error("holds no pieces", where, "this is not a SentencePiece model");
  return model;
}

}  // namespace snug
