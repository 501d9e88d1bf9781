#pragma once
// The text that a line of JSON holds: what containers, collectors and notebooks keep of a program's output. Of an object
// that has a key such as "log" or "message", its strings are the text; of one that has none, all strings are. Comes in by
// parts.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace snug {

bool looks_like_json(std::string_view line);

class JsonText {
 public:
  // `sink` gets the text line by line.
  explicit JsonText(std::function<void(std::string_view)> sink) : sink_(std::move(sink)) {}

  void feed(std::string_view part);
  void finish();  // of the line that is JSON

 private:
  void in_string(char c);
  void escaped(char c);
  void outside(char c);
  void end_string();
  void put(char c);
  void emit();

  std::function<void(std::string_view)> sink_;
  std::string text_;    // of the string, since its last line
  std::string key_;     // of the value
  std::string others_;  // lines of strings under other keys, used if there are no better
  bool in_string_ = false, escape_ = false, after_colon_ = false;
  bool told_ = false;     // a key that holds text has come
  bool is_text_ = false;  // this string is under such a key
  int array_ = 0;         // depth of arrays under the key
  int hex_ = 0;           // digits of \\u that are to come
  uint32_t code_ = 0;
};

}  // namespace snug
