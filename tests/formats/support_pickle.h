#pragma once
// A builder that keeps everything, and the text of what it kept: that of tests/oracle/make_pickles.py.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "formats/pickle.h"

namespace snug {

class KeepingBuilder : public PickleBuilder {
 public:
  PickleValue wide_integer(std::span<const std::byte> bytes) override {
    return keep(PickleKind::wide_integer, "L" + hex(bytes));
  }
  PickleValue real(double value) override {
    reals_.push_back(value);
    return {PickleKind::real, static_cast<int64_t>(reals_.size()) - 1};
  }
  PickleValue text(std::string_view text) override { return keep(PickleKind::text, std::string(text)); }
  PickleValue bytes(std::string_view bytes) override {
    return keep(PickleKind::bytes, "b" + hex(std::as_bytes(std::span(bytes))));
  }
  PickleValue tuple(PickleItems items) override { return container(PickleKind::tuple, items); }
  PickleValue frozen_set(PickleItems items) override { return container(PickleKind::set, items); }
  PickleValue list() override { return container(PickleKind::list, {}); }
  PickleValue dict() override { return container(PickleKind::dict, {}); }
  PickleValue set() override { return container(PickleKind::set, {}); }
  void append(PickleValue list, PickleItems items) override { add(list, items); }
  void assign(PickleValue dict, PickleItems items) override { add(dict, items); }
  void insert(PickleValue set, PickleItems items) override { add(set, items); }
  std::string name(PickleValue text) const override { return texts_[text.index()]; }

  std::string render(PickleValue value) {
    switch (value.kind()) {
      case PickleKind::none: return "None";
      case PickleKind::boolean: return value.payload() != 0 ? "True" : "False";
      case PickleKind::integer: return std::to_string(value.payload());
      case PickleKind::real: return render_real(reals_[value.index()]);
      case PickleKind::text: return '"' + texts_[value.index()] + '"';
      case PickleKind::wide_integer:
      case PickleKind::bytes: return texts_[value.index()];
      default: return render_container(value);
    }
  }

 private:
  static std::string hex(std::span<const std::byte> bytes) {
    std::string text;
    for (const std::byte byte : bytes) {
      text += "0123456789abcdef"[static_cast<unsigned>(byte) / 16];
      text += "0123456789abcdef"[static_cast<unsigned>(byte) % 16];
    }
    return text;
  }

  // As Python's float.hex().
  static std::string render_real(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    if (value == 0) return std::signbit(value) ? "-0x0.0p+0" : "0x0.0p+0";
    char text[64];
    std::snprintf(text, sizeof text, "%.13a", value);
    return text;
  }

  std::string render_container(PickleValue value) {
    if (std::find(open_.begin(), open_.end(), value) != open_.end()) return "<cycle>";
    open_.push_back(value);
    std::vector<std::string> parts;
    for (const PickleValue item : items_[value.index()]) parts.push_back(render(item));
    open_.pop_back();
    const bool dict = value.is(PickleKind::dict), set = value.is(PickleKind::set);
    if (set) std::sort(parts.begin(), parts.end());
    std::string text = dict ? "{" : set ? "<" : value.is(PickleKind::list) ? "[" : "(";
    for (size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : dict && i % 2 == 1 ? ":" : ",") + parts[i];
    return text + (dict ? "}" : set ? ">" : value.is(PickleKind::list) ? "]" : ")");
  }

  PickleValue keep(PickleKind kind, std::string text) {
    texts_.push_back(std::move(text));
    return {kind, static_cast<int64_t>(texts_.size()) - 1};
  }

  PickleValue container(PickleKind kind, PickleItems items) {
    items_.emplace_back(items.begin(), items.end());
    return {kind, static_cast<int64_t>(items_.size()) - 1};
  }

  void add(PickleValue container, PickleItems items) {
    auto& kept = items_[container.index()];
    kept.insert(kept.end(), items.begin(), items.end());
  }

  std::deque<std::string> texts_;
  std::vector<double> reals_;
  std::deque<std::vector<PickleValue>> items_;
  std::vector<PickleValue> open_;
};

}  // namespace snug
