#pragma once
// The messages of an Arrow stream, or of the file format, one after the other: the header of each, and where its body lies
// in the file. Source: arrow/docs/source/format/Columnar.rst, "Encapsulated message format", with the framing before Arrow
// 0.15, and "IPC file format"; Message.fbs, File.fbs.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/file.h"
#include "data/arrow/flatbuffer.h"

namespace snug::arrow {

enum class MessageKind : uint8_t { schema = 1, dictionary = 2, batch = 3 };

struct Message {
  std::vector<std::byte> bytes;  // which `header` lies in
  MessageKind kind;
  Table header;
  int64_t body, body_bytes;  // where the body lies in the file
};

class MessageReader {
 public:
  // `file` must outlive it. Reads the footer of a file that is no stream. Throws Error.
  explicit MessageReader(const InputFile& file);

  // The schema first; none at the end. Throws Error, also where a stream ends without its end mark.
  std::optional<Message> next();

 private:
  void read_footer();
  std::optional<Message> read_message();

  const InputFile& file_;
  int64_t size_, offset_ = 0;
  std::optional<Message> schema_;  // of the footer, until it is given
  std::vector<int64_t> blocks_;    // of the footer: where the messages lie that are still to come, the last first
  bool has_footer_ = false;
};

}  // namespace snug::arrow
