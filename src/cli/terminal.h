#pragma once
// The terminal as one who asks: answers go to stdout, what is told beside them to stderr.

#include <cstdio>

#include "ask/asker.h"

namespace snug::cli {

bool is_terminal(std::FILE* stream);
// Colour and the terminal's width on a terminal, plain 80 columns elsewhere.
TextStyle style_of(std::FILE* stream);

class Terminal final : public Asker {
 public:
  void print(std::string_view text) override { std::fwrite(text.data(), 1, text.size(), stdout); }
  void tell(std::string_view text) override { std::fwrite(text.data(), 1, text.size(), stderr); }
  TextStyle style() const override { return style_of(stdout); }
  CountedData count_rows(const Plan& plan) override;
};

}  // namespace snug::cli
