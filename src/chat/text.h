#pragma once
// A string of a template, immutable and shared: UTF-8 bytes, and for each run of bytes where it came from. Tags follow the
// bytes through every string operation, so that the rendered text says which message each byte belongs to (spans.h). It
// knows nothing of messages.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/meter.h"

namespace snug::chat {

struct Tag {
  int32_t origin = -1;      // the message whose text this is, -1: the template's own
  int32_t turn = -1;        // the message whose turn of a loop printed it, -1: none
  int32_t generation = -1;  // the {% generation %} block that holds it, counted from 0, -1: none
  friend bool operator==(const Tag&, const Tag&) = default;
};

// Bytes up to `end`, from where the run before ended.
struct Run {
  int64_t end = 0;
  Tag tag;
};

class Text;
using TextRef = std::shared_ptr<const Text>;

class Text {
 public:
  // `bytes` is valid UTF-8; `runs` covers it or is empty. `markup`: it is HTML already, as the filters safe and escape say.
  explicit Text(std::string bytes, std::vector<Run> runs = {}, bool markup = false);

  std::string_view view() const { return bytes_; }
  const std::string& bytes() const { return bytes_; }
  const std::vector<Run>& runs() const { return runs_; }
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }  // bytes
  int64_t length() const { return length_; }                            // characters
  bool ascii() const { return length_ == size(); }
  bool markup() const { return markup_; }

  // Where character `index` (0 … length) begins, in bytes.
  int64_t offset_of(int64_t index) const;
  // How many characters begin before byte `offset`.
  int64_t index_at(int64_t offset) const;

  // Bytes [begin, end), with their tags.
  TextRef piece(int64_t begin, int64_t end) const;

 private:
  std::string bytes_;
  std::vector<Run> runs_;
  int64_t length_ = 0;
  bool markup_ = false;
  Charge charge_;
};

inline TextRef make_text(std::string bytes) { return std::make_shared<const Text>(std::move(bytes)); }
TextRef make_tagged(std::string bytes, const Tag& tag);
// `text`, said to be HTML or not.
TextRef with_markup(const TextRef& text, bool markup);

// A text under construction.
class TextBuilder {
 public:
  void add(std::string_view bytes, const Tag& tag = {});
  // What the tags of `text` leave open is taken from `fill`.
  void add(const Text& text, const Tag& fill = {});
  void add(const Text& text, int64_t begin, int64_t end, const Tag& fill = {});

  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  std::string_view view() const { return bytes_; }
  const std::vector<Run>& runs() const { return runs_; }
  // The text; the builder is empty after.
  TextRef take(bool markup = false);

 private:
  void close_run(int64_t end, const Tag& tag);

  std::string bytes_;
  std::vector<Run> runs_;
  Charge charge_;
};

}  // namespace snug::chat
