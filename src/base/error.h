#pragma once
// The one error type. It carries what went wrong, where, and how to mend it; the library throws it, the command line prints
// it as one line. Nothing else is thrown on purpose.

#include <stdexcept>
#include <string>
#include <utility>

namespace snug {

class Error : public std::runtime_error {
 public:
  // `what`: "hidden_size is 0"; `where`: "model/config.json" or "data.jsonl:17"; `mend`: "give a positive number".
  // `where` and `mend` may be empty.
  Error(std::string what, std::string where = {}, std::string mend = {})
      : std::runtime_error(line(what, where, mend)),
        what_(std::move(what)),
        where_(std::move(where)),
        mend_(std::move(mend)) {}

  const std::string& problem() const { return what_; }
  const std::string& where() const { return where_; }
  const std::string& mend() const { return mend_; }

 private:
  // Names come from files that may be hostile: a message stays one line of bounded length.
  static std::string tame(const std::string& text) {
    constexpr size_t kLongest = 400;
    std::string tamed = text.size() > kLongest ? text.substr(0, kLongest) + "…" : text;
    for (char& c : tamed)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    return tamed;
  }

  static std::string line(const std::string& what, const std::string& where, const std::string& mend) {
    std::string text = where.empty() ? tame(what) : tame(where) + ": " + tame(what);
    return mend.empty() ? text : text + " (" + tame(mend) + ")";
  }

  std::string what_, where_, mend_;
};

}  // namespace snug
