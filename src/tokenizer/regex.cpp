#include "tokenizer/regex.h"

#include <array>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"

namespace snug {
namespace {

// Expressions are a few hundred bytes; a hostile file may hold anything.
constexpr size_t kMaxPattern = 32 << 10;
constexpr uint32_t kMatchLimit = 10'000'000;

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// PCRE2's notes of one match, one for each thread.
pcre2_match_data* match_data() {
  struct Free {
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  thread_local const std::unique_ptr<pcre2_match_data, Free> data(pcre2_match_data_create(1, nullptr));
  if (data == nullptr) throw Error("out of memory");
  return data.get();
}

}  // namespace

struct Regex::Compiled {
  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    pcre2_match_context_free(context);
    pcre2_code_free(code);
  }

  pcre2_code* code = nullptr;
  pcre2_match_context* context = nullptr;
  bool jit = false;
};

void Regex::Deleter::operator()(Compiled* compiled) const { std::default_delete<Compiled>()(compiled); }

Regex::Regex(std::string_view pattern, const std::string& where) : where_(where) {
  if (pattern.empty()) throw Error("the pattern is empty", where, "remove this step");
  if (pattern.size() > kMaxPattern)
    throw Error("the pattern is longer than 32 KiB", where, "use the tokenizer as published");
  const std::string translated = translate_oniguruma(pattern, where);
  compiled_.reset(std::make_unique<Compiled>().release());
  int code = 0;
  PCRE2_SIZE offset = 0;
  compiled_->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &offset, nullptr);
  if (compiled_->code == nullptr) {
    throw Error("the regular expression is refused at byte " + std::to_string(offset) + ": " + message_of(code), where,
                "use the tokenizer as published, or report the model");
  }
  // Where it is not allowed, matching is slower and equal.
  compiled_->jit = pcre2_jit_compile(compiled_->code, PCRE2_JIT_COMPLETE) == 0;
  compiled_->context = pcre2_match_context_create(nullptr);
  if (compiled_->context == nullptr) throw Error("out of memory", where);
  pcre2_set_match_limit(compiled_->context, kMatchLimit);
}

Regex::Match Regex::find(std::string_view text, size_t from) const {
  pcre2_match_data* const data = match_data();
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const int result =
      compiled_->jit
          ? pcre2_jit_match(compiled_->code, subject, text.size(), from, 0, data, compiled_->context)
          : pcre2_match(compiled_->code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, data, compiled_->context);
  if (result == PCRE2_ERROR_NOMATCH) return {};
  if (result < 0) throw Error("the regular expression fails on a text: " + message_of(result), where_, "shorten the text");
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data);
  return {ends[0], ends[1], true};
}

}  // namespace snug
