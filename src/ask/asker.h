#pragma once
// Who asks: takes the answer and what is to be said beside it, and does what only a whole program can.

#include <functional>
#include <string>
#include <string_view>

#include "advise/workload.h"
#include "plan/plan.h"
#include "report/text_style.h"

namespace snug {

class Asker {
 public:
  Asker() = default;
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;
  virtual ~Asker() = default;

  virtual void print(std::string_view text) = 0;  // the answer
  virtual void tell(std::string_view text) = 0;   // notes and errors, whole lines
  virtual TextStyle style() const { return {}; }
  // Rows and tokens of the plan's data file. Throws Error where they cannot be counted.
  virtual CountedData count_rows(const Plan& plan);
};

// What was answered and told, as text.
struct Reply {
  int exit_code = 0;  // 0 done; 1 bad input or failure; 2 usage; 3 does not fit
  std::string output, messages;
};

// Keeps what it is told.
class Listener final : public Asker {
 public:
  void print(std::string_view text) override { reply.output += text; }
  void tell(std::string_view text) override { reply.messages += text; }

  Reply reply;
};

// The exit code of `answer`; what it throws is told in one line.
int exit_code_of(const std::function<int()>& answer, Asker& asker);

}  // namespace snug
