// YAML -> Document, in one walk over yaml-cpp's events: nothing is constructed; what an alias stands for is copied, and with
// all copies a file holds no more keys than another may.

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <sstream>

#include "base/error.h"
#include "recipe/dialects/document.h"

namespace snug::dialects {

namespace {

constexpr size_t kDeepest = 16, kMostEntries = 20000, kMostCopied = 16 << 20;  // the last in bytes

class Walk : public YAML::EventHandler {
 public:
  explicit Walk(Document& document) : document_(document), text_(document.text) {
    starts_.push_back(0);
    for (size_t at = text_.find('\n'); at != std::string_view::npos; at = text_.find('\n', at + 1))
      starts_.push_back(at + 1);
  }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (levels_.empty()) return;
    if (wants_key()) fail("a key must be plain text", mark);
    add(EntryKind::scalar, {}, std::nullopt);
    keep(anchor, document_.entries.size() - 1);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (levels_.empty() || wants_key()) fail("a key must be plain text", mark);
    const auto kept = kept_.find(anchor);
    if (kept == kept_.end()) fail("an alias stands in what it is an alias of", mark, "write the value itself");
    Level& level = levels_.back();
    const bool merges_several = !level.is_map && is_plain_list(level) && leaf_of(level) == "<<";
    if (merges_several || (level.is_map && level.key == "<<")) {
      level.has_key = false;
      return merge(kept->second, merges_several ? levels_[levels_.size() - 2] : level);
    }
    if (!level.is_map && is_plain_list(level) && kept->second.front().kind == EntryKind::scalar) {
      copies(kept->second.front());
      document_.entries[level.entry].values.push_back(kept->second.front().text());
      ++level.items;
      return;
    }
    copies(kept->second.front());
    add(kept->second.front().kind, kept->second.front().values, std::nullopt);
    document_.entries.back().in_place = false;
    const std::string path = document_.entries.back().path;
    for (const Entry& entry : std::span(kept->second).subspan(1)) put(entry, path + "." + entry.path);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    if (levels_.empty()) fail("a recipe is a mapping of keys to values", mark);
    Level& level = levels_.back();
    if (wants_key()) return take_key(value, offset_of(mark), mark);
    if (!level.is_map && is_plain_list(level)) {
      document_.entries[level.entry].values.push_back(value);
      ++level.items;
      if (anchor != 0) kept_[anchor] = {Entry{.values = {value}}};
      return;
    }
    add(EntryKind::scalar, {value}, span_of(mark, tag, value));
    keep(anchor, document_.entries.size() - 1);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    descend(mark, anchor, style, false);
  }
  void OnSequenceEnd() override { ascend(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    descend(mark, anchor, style, true);
  }
  void OnMapEnd() override { ascend(); }

 private:
  struct Level {
    bool is_map = true, flow = false;
    std::string prefix;    // path of what it holds: "model."
    size_t entry = kNone;  // its own entry
    int64_t items = 0;     // of a list
    bool has_key = false;  // of a map: a key waits for its value
    std::string key;
    Span key_span;
    int64_t key_line = 0;
    YAML::anchor_t anchor = 0;
    std::set<size_t> merged = {};  // entries that "<<" brought
  };
  static constexpr size_t kNone = static_cast<size_t>(-1);

  [[noreturn]] void fail(const std::string& what, const YAML::Mark& mark, const std::string& mend = {}) const {
    throw Error(what, mark.is_null() ? document_.where : fmt::format("{}:{}", document_.where, mark.line + 1), mend);
  }

  // What stands from entry `first` on, for aliases of it: paths below that of the first, whose own is left out.
  void keep(YAML::anchor_t anchor, size_t first) {
    if (anchor == 0) return;
    std::vector<Entry> kept(document_.entries.begin() + static_cast<std::ptrdiff_t>(first), document_.entries.end());
    for (const Entry& entry : kept) copies(entry);
    const size_t above = kept.front().path.size() + 1;
    for (Entry& entry : std::span(kept).subspan(1)) entry.path.erase(0, above);
    kept.front().path.clear();
    kept_[anchor] = std::move(kept);
  }

  // A few lines may stand for very many: bounded in all.
  void copies(const Entry& entry) {
    copied_ += sizeof(Entry) + entry.path.size();
    for (const std::string& value : entry.values) copied_ += sizeof(std::string) + value.size();
    if (copied_ > kMostCopied) throw Error("the aliases stand for too much", document_.where, "write the values themselves");
  }

  // Nothing of it can be changed where the alias stands.
  void put(Entry entry, std::string path) {
    copies(entry);
    if (document_.entries.size() >= kMostEntries) throw Error("the file holds too many keys", document_.where);
    entry.path = std::move(path);
    entry.in_place = false;
    document_.entries.push_back(std::move(entry));
  }

  // "<<: *base" in `level`.
  void merge(const std::vector<Entry>& base, Level& level) {
    for (const Entry& entry : std::span(base).subspan(1)) {
      level.merged.insert(document_.entries.size());
      put(entry, level.prefix + entry.path);
      document_.entries.back().line = 0;  // as if it stood in another file: a key of the file's own holds over it
    }
  }

  // What is merged holds below what else says the same, wherever that stands; of several the first.
  void settle_merges(const Level& level) {
    if (level.merged.empty()) return;
    const size_t begin = level.entry == kNone ? 0 : level.entry + 1;
    std::set<std::string, std::less<>> said;
    for (size_t i = begin; i < document_.entries.size(); ++i)
      if (!level.merged.contains(i)) said.insert(document_.entries[i].path);
    const auto is_said = [&](const std::string& path) {
      for (size_t end = path.size(); end != std::string::npos && end > level.prefix.size(); end = path.rfind('.', end - 1))
        if (said.contains(std::string_view(path).substr(0, end))) return true;
      return false;
    };
    std::vector<bool> dropped(document_.entries.size(), false);
    for (const size_t i : level.merged) dropped[i] = is_said(document_.entries[i].path);
    std::set<std::string> first;
    for (const size_t i : level.merged) dropped[i] = dropped[i] || !first.insert(document_.entries[i].path).second;
    size_t to = begin;
    for (size_t i = begin; i < document_.entries.size(); ++i)
      if (!dropped[i]) {
        if (to != i) document_.entries[to] = std::move(document_.entries[i]);
        ++to;
      }
    document_.entries.resize(to);
  }
  std::string_view leaf_of(const Level& level) const { return document_.entries[level.entry].leaf(); }
  bool wants_key() const { return !levels_.empty() && levels_.back().is_map && !levels_.back().has_key; }
  bool is_plain_list(const Level& level) const { return level.entry != kNone; }

  size_t offset_of(const YAML::Mark& mark) const {
    const auto line = static_cast<size_t>(std::max(mark.line, 0));
    if (line >= starts_.size()) return text_.size();
    return std::min(text_.size(), starts_[line] + static_cast<size_t>(std::max(mark.column, 0)));
  }

  void take_key(const std::string& name, size_t offset, const YAML::Mark& mark) {
    Level& level = levels_.back();
    // device_map: {"": 0} is what Python's loaders take.
    if ((name.empty() && level.prefix.empty()) || name.size() > 200)
      fail("a key must be plain text of at most 200 bytes", mark);
    const size_t quotes = offset < text_.size() && (text_[offset] == '"' || text_[offset] == '\'') ? 2 : 0;
    level.has_key = true;
    level.key = name;
    level.key_span = {offset, std::min(text_.size(), offset + name.size() + quotes)};
    level.key_line = mark.line + 1;
  }

  // Where a scalar stands, if that is one piece of one line.
  std::optional<Span> span_of(const YAML::Mark& mark, const std::string& tag, const std::string& value) const {
    const size_t begin = offset_of(mark);
    if (begin >= text_.size() || (tag != "?" && tag != "!")) return std::nullopt;
    const char quote = text_[begin];
    if (tag == "!") {
      if (quote != '"' && quote != '\'') return std::nullopt;  // a block of lines
      for (size_t at = begin + 1; at < text_.size() && text_[at] != '\n'; ++at) {
        const bool doubled = quote == '\'' && text_.substr(at).starts_with("''");
        if (doubled || (text_[at] == '\\' && quote == '"')) {
          ++at;
        } else if (text_[at] == quote) {
          return Span{begin, at + 1};
        }
      }
      return std::nullopt;
    }
    if (text_.substr(begin, value.size()) != value || value.find('\n') != std::string::npos) return std::nullopt;
    return Span{begin, begin + value.size()};
  }

  // Of a value that is not written, or written as null: what stands between the colon and the line's end or comment.
  std::optional<Span> span_of_null(const Level& level) const {
    const size_t end = std::min(text_.find('\n', level.key_span.end), text_.size());
    const size_t colon = text_.find(':', level.key_span.end);
    if (level.flow || colon >= end) return std::nullopt;
    size_t begin = colon + 1, last = begin;
    for (size_t at = begin; at < end && text_[at] != '#'; ++at)
      if (text_[at] != ' ' && text_[at] != '\t' && text_[at] != '\r') last = at + 1;
    if (last > begin) begin = text_.find_first_not_of(" \t", begin);
    return Span{begin, std::max(begin, last)};
  }

  void add(EntryKind kind, std::vector<std::string> values, std::optional<Span> span) {
    if (document_.entries.size() >= kMostEntries) throw Error("the file holds too many keys", document_.where);
    Level& level = levels_.back();
    Entry entry;
    entry.kind = kind;
    entry.values = std::move(values);
    entry.in_flow = level.flow;
    if (level.is_map) {
      entry.path = level.prefix + level.key;
      entry.line = level.key_line;
      entry.name = level.key_span;
      if (kind == EntryKind::scalar && entry.values.empty()) span = span_of_null(level);
      level.has_key = false;
    } else {
      entry.path = level.prefix + std::to_string(level.items++);
    }
    entry.in_place = span.has_value();
    if (span) entry.value = *span;
    document_.entries.push_back(std::move(entry));
  }

  void descend(const YAML::Mark& mark, YAML::anchor_t anchor, YAML::EmitterStyle::value style, bool is_map) {
    if (levels_.size() >= kDeepest) fail("the YAML is nested too deeply", mark, "no recipe needs that");
    if (levels_.empty() && !is_map)
      fail("a recipe is a mapping of keys to values", mark, "write lines such as 'key: value'");
    if (wants_key()) fail("a key must be plain text", mark);
    Level below;
    below.is_map = is_map;
    below.anchor = anchor;
    below.flow = style == YAML::EmitterStyle::Flow || (!levels_.empty() && levels_.back().flow);
    if (!levels_.empty()) {
      add(is_map ? EntryKind::map : EntryKind::list, {}, std::nullopt);
      below.entry = document_.entries.size() - 1;
      below.prefix = document_.entries.back().path + ".";
      if (below.prefix.size() > 1000) fail("the keys are too long", mark);
    }
    levels_.push_back(std::move(below));
  }
  void ascend() {
    if (levels_.empty()) return;
    const Level level = std::move(levels_.back());
    levels_.pop_back();
    settle_merges(level);
    if (level.entry == kNone) return;
    if (leaf_of(level) == "<<") return take_out_merge(level);
    keep(level.anchor, level.entry);
  }

  // "<<: {a: 1}"; of "<<: [*a, *b]" all is merged already.
  void take_out_merge(const Level& level) {
    auto& entries = document_.entries;
    const std::string mark = entries[level.entry].path + ".";
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(level.entry));
    if (levels_.empty()) return;
    Level& around = levels_.back();
    std::erase_if(around.merged, [&](size_t i) { return i >= level.entry; });
    for (size_t i = level.entry; i < entries.size(); ++i) {
      if (entries[i].path.starts_with(mark)) entries[i].path = around.prefix + entries[i].path.substr(mark.size());
      around.merged.insert(i);
    }
  }

  Document& document_;
  std::string_view text_;
  std::vector<size_t> starts_;
  std::vector<Level> levels_;
  std::map<YAML::anchor_t, std::vector<Entry>> kept_;  // what anchors stand for
  size_t copied_ = 0;
};

}  // namespace

Document read_yaml(std::string_view text, const std::string& where) {
  Document document{.syntax = Syntax::yaml, .text = std::string(text), .where = where};
  try {
    std::istringstream stream(document.text);
    YAML::Parser parser(stream);
    Walk walk(document);
    if (parser.HandleNextDocument(walk) && parser.HandleNextDocument(walk))
      throw Error("the file holds several YAML documents", where, "keep one");
  } catch (const YAML::Exception& error) {
    throw Error(fmt::format("not valid YAML: {}", error.msg),
                error.mark.is_null() ? where : fmt::format("{}:{}", where, error.mark.line + 1));
  }
  return document;
}

}  // namespace snug::dialects
