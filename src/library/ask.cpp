// The C interface of include/snug/ask.h. Nothing that is thrown leaves it.

#include "snug/ask.h"

#include <memory>
#include <string>
#include <vector>

#include "ask/answers.h"
#include "base/version.h"

struct snug_answer {
  snug::Reply reply;
};

snug_answer* snug_ask(int count, const char* const* words) {
  try {
    std::vector<std::string> asked;
    for (int i = 0; i < count; ++i) asked.emplace_back(words[i]);
    return std::make_unique<snug_answer>(snug_answer{snug::ask(asked)}).release();
  } catch (const std::exception&) {  // no memory
    return nullptr;
  }
}

int snug_exit_code(const snug_answer* answer) { return answer->reply.exit_code; }

const char* snug_output(const snug_answer* answer) { return answer->reply.output.c_str(); }

const char* snug_messages(const snug_answer* answer) { return answer->reply.messages.c_str(); }

void snug_free(snug_answer* answer) { const std::unique_ptr<snug_answer> taken(answer); }

const char* snug_version() { return snug::kVersion; }
