#include "tokenizer/decoder.h"

#include <charconv>
#include <optional>

#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"

namespace snug {
namespace {

using Strings = std::vector<std::string>;

std::string joined(const Strings& strings, std::string_view between) {
  std::string text;
  for (size_t i = 0; i < strings.size(); ++i) {
    if (i > 0) text += between;
    text += strings[i];
  }
  return text;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  std::string result;
  size_t at = 0;
  for (size_t found = text.find(from); found != std::string::npos; found = text.find(from, at)) {
    result.append(text, at, found - at).append(to);
    at = found + from.size();
  }
  text = result.append(text, at);
}

// The byte that "<0xE2>" spells.
std::optional<char> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  std::string_view digits = token.substr(3, 2);
  if (digits[0] == '+') digits.remove_prefix(1);  // as Rust reads numbers
  unsigned value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return static_cast<char>(value);
}

class Stepper {
 public:
  explicit Stepper(Strings& strings) : strings_(strings) {}

  void operator()(const Decoder::ByteLevel& /*step*/) const {
    std::string bytes;
    // Strings may hold characters outside the byte alphabet; such a string stands for itself.
    for (const std::string& token : strings_) {
      if (!kByteAlphabet.append_bytes(bytes, token)) bytes += token;
    }
    strings_ = {is_utf8(bytes) ? bytes : utf8_lossy(bytes)};
  }

  void operator()(const Decoder::Replace& step) const {
    for (std::string& text : strings_) {
      std::string result;
      step.pattern.find_spans(text, [&](const Pattern::Span& span) {
        span.match ? result += step.content : result.append(text, span.begin, span.end - span.begin);
      });
      text = std::move(result);
    }
  }

  void operator()(const Decoder::ByteFallback& /*step*/) const {
    Strings result;
    std::string bytes;
    const auto release = [&] {
      if (is_utf8(bytes)) {
        if (!bytes.empty()) result.push_back(bytes);
      } else {
        result.insert(result.end(), bytes.size(), "\xEF\xBF\xBD");
      }
      bytes.clear();
    };
    for (std::string& token : strings_) {
      if (const auto byte = fallback_byte(token)) {
        bytes += *byte;
      } else {
        release();
        result.push_back(std::move(token));
      }
    }
    release();
    strings_ = std::move(result);
  }

  void operator()(const Decoder::Fuse& /*step*/) const { strings_ = {joined(strings_, "")}; }
  void operator()(const Decoder::Join& /*step*/) const { strings_ = {joined(strings_, " ")}; }

  void operator()(const Decoder::Strip& step) const {
    for (std::string& text : strings_) {
      std::string_view rest = text;
      for (int64_t i = 0; i < step.start && rest.starts_with(step.character); ++i) rest.remove_prefix(step.character.size());
      for (int64_t i = 0; i < step.stop && rest.ends_with(step.character); ++i) rest.remove_suffix(step.character.size());
      text = std::string(rest);
    }
  }

  void operator()(const Decoder::Metaspace& step) const {
    for (size_t i = 0; i < strings_.size(); ++i) replace_all(strings_[i], step.mark, i == 0 && step.trim ? "" : " ");
  }

  void operator()(const Decoder::Suffix& step) const {
    for (size_t i = 0; i < strings_.size(); ++i) replace_all(strings_[i], step.mark, i + 1 == strings_.size() ? "" : " ");
  }

 private:
  Strings& strings_;
};

}  // namespace

void Decoder::add(Step&& step) { steps_.push_back(std::move(step)); }

std::string Decoder::decode(Strings tokens) const {
  for (const Step& step : steps_) std::visit(Stepper(tokens), step);
  return joined(tokens, "");
}

}  // namespace snug
