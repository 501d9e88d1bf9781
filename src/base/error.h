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
  static std::string line(const std::string& what, const std::string& where, const std::string& mend) {
    std::string text = where.empty() ? what : where + ": " + what;
    return mend.empty() ? text : text + " (" + mend + ")";
  }

  std::string what_, where_, mend_;
};

}  // namespace snug
