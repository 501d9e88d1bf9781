#include "chat/spans.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "chat/characters.h"
#include "chat/conversation.h"

namespace snug::chat {
namespace {

// Beyond so many assistant messages prefixes are not rendered: their cost grows with the square.
constexpr int64_t kMostPrefixed = 40;

bool is_assistant(const Value& message) {
  const Value* role = message.dict()->find("role");
  return role != nullptr && role->is_string() && role->view() == "assistant";
}

std::string_view without_end_space(std::string_view text) {
  while (!text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0U) == 0x80U) --last;
    if (!is_space(decode(text.substr(last)))) break;
    text = text.substr(0, last);
  }
  return text;
}

// How much of `opening` the text begins with, cut back to the end of a token's text: "<|assistant|>" of
// "<|assistant|>\n<think>".
size_t common_opening(std::string_view opening, std::string_view text) {
  const auto parts = std::mismatch(opening.begin(), opening.end(), text.begin(), text.end());
  auto length = static_cast<size_t>(parts.first - opening.begin());
  if (length == text.size()) return length;
  while (length > 0 && std::string_view(">]:\n \t}").find(opening[length - 1]) == std::string_view::npos) --length;
  return length;
}

// Of the turn of message 1, what stands before its own text; empty if that is only space.
std::string text_before_answer(const Text& text) {
  int64_t begin = 0;
  int64_t turn = -1;
  for (const Run& run : text.runs()) {
    if (run.tag.origin == 1) break;
    if (run.tag.turn == 1 && turn < 0) turn = begin;
    begin = run.end;
  }
  if (turn < 0) return {};
  const std::string_view before = text.view().substr(static_cast<size_t>(turn), static_cast<size_t>(begin - turn));
  return without_end_space(before).empty() ? std::string() : std::string(before);
}

}  // namespace

SpanFinder::SpanFinder(const Syntax& syntax, std::function<std::tm()> clock, const Conversation& conversation,
                       const Variables& special_tokens)
    : syntax_(syntax), clock_(std::move(clock)), conversation_(conversation), special_tokens_(special_tokens) {
  for (const auto& [name, text] : special_tokens)
    if (name == "eos_token") eos_token_ = text;
}

TextRef SpanFinder::run(const std::vector<Value>& messages, bool generation_prompt, bool turns) const {
  Conversation conversation = conversation_;
  conversation.add_generation_prompt = generation_prompt;
  std::unordered_map<const Dict*, int32_t> numbers;
  for (size_t i = 0; turns && i < messages.size(); ++i) numbers.emplace(messages[i].dict().get(), static_cast<int32_t>(i));
  const Dict variables = template_variables(messages, conversation, special_tokens_);
  return Interpreter({syntax_, variables, clock_, turns ? &numbers : nullptr}).run();
}

std::optional<std::string> SpanFinder::prefix(size_t count, bool generation_prompt) const {
  const Meter meter;
  try {
    return run({messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(count)}, generation_prompt, false)
        ->bytes();
  } catch (const Error&) {
    return std::nullopt;
  }
}

Rendered SpanFinder::render() {
  messages_ = normalize_messages(conversation_.messages, true);
  {
    const Meter meter;
    const TextRef whole = run(messages_, conversation_.add_generation_prompt, true);
    text_ = whole->bytes();
    runs_ = whole->runs();
  }
  Rendered rendered;
  if (syntax_.has_generation) {
    for (size_t i = 0; i < messages_.size(); ++i)
      if (is_assistant(messages_[i]) && wants_loss(i)) refuse_lost(static_cast<int32_t>(i));
    rendered.assistant = marked_spans();
  } else {
    by_prefixes_ = std::ranges::count_if(messages_, is_assistant) <= kMostPrefixed;
    for (size_t i = 0; i < messages_.size(); ++i) {
      if (!is_assistant(messages_[i]) || !wants_loss(i)) continue;
      for (const AssistantSpan& span : spans_of(static_cast<int32_t>(i))) {
        if (!rendered.assistant.empty() && span.begin < rendered.assistant.back().end) {
          throw Error(fmt::format("messages {} and {} overlap in the rendered text", rendered.assistant.back().message, i),
                      syntax_.where, "give the template {% generation %} blocks");
        }
        rendered.assistant.push_back(span);
      }
    }
  }
  rendered.text = std::move(text_);
  return rendered;
}

bool SpanFinder::wants_loss(size_t message) const {
  const Dict& fields = *messages_[message].dict();
  if (const Value* weight = fields.find("weight"); weight != nullptr && weight->as_real() == 0.0) return false;
  for (const std::string_view name : {"loss", "train"})
    if (const Value* flag = fields.find(name); flag != nullptr && flag->is(Kind::boolean) && !flag->boolean()) return false;
  return true;
}

std::vector<AssistantSpan> SpanFinder::marked_spans() const {
  std::vector<AssistantSpan> spans;
  int64_t begin = 0;
  int32_t open = -1;  // the block of the last span
  for (const Run& run : runs_) {
    if (run.tag.generation >= 0) {
      const int32_t message = run.tag.turn >= 0 ? run.tag.turn : run.tag.origin;
      const bool goes_on = run.tag.generation == open && spans.back().end == begin;
      if (!goes_on) spans.push_back({begin, begin, -1});
      spans.back().end = run.end;
      if (spans.back().message < 0) spans.back().message = message;
      open = run.tag.generation;
    }
    begin = run.end;
  }
  std::erase_if(
      spans, [&](const AssistantSpan& span) { return span.message >= 0 && !wants_loss(static_cast<size_t>(span.message)); });
  return spans;
}

std::vector<SpanFinder::Region> SpanFinder::regions_of(int32_t message) const {
  std::vector<Region> regions;
  int64_t begin = 0;
  bool inside = false;
  for (const Run& run : runs_) {
    const bool own = run.tag.origin == message;
    if (run.tag.turn == message || (run.tag.turn < 0 && own)) {
      if (!inside) regions.push_back({begin, begin});
      Region& region = regions.back();
      region.end = run.end;
      if (own && region.own_begin < 0) region.own_begin = begin;
      if (own) region.own_end = run.end;
      inside = true;
    } else {
      inside = false;
    }
    begin = run.end;
  }
  if (std::ranges::any_of(regions, [](const Region& region) { return region.own_begin >= 0; })) {
    std::erase_if(regions, [](const Region& region) { return region.own_begin < 0; });
  } else if (regions.size() > 1) {
    regions.erase(regions.begin(), regions.end() - 1);
  }
  return regions;
}

// What opens a plain answer: the generation prompt, or, if the template knows none, what it writes before the answer unless
// that is only space. Empty if neither can be told.
const std::string& SpanFinder::header() {
  if (header_) return *header_;
  header_ = "";
  const auto message = [](const char* role, int32_t number) {
    Dict fields;
    fields.set("role", Value::text(role));
    fields.set("content", Value::text(make_tagged("x", {number, -1, -1})));
    return Value::dict(std::move(fields));
  };
  const Meter meter;
  try {
    if (std::ranges::find(syntax_.symbols, "add_generation_prompt") != syntax_.symbols.end()) {
      const std::string without = run({message("user", 0)}, false, false)->bytes();
      const std::string with = run({message("user", 0)}, true, false)->bytes();
      header_ = with.substr(common_opening(with, without));  // without prompt some templates close the text instead
    } else {
      header_ = text_before_answer(*run({message("user", 0), message("assistant", 1)}, false, true));
    }
  } catch (const Error&) {
    // the template refuses so plain a conversation: then nothing is known of a header
  }
  return *header_;
}

// Refuses a message that has something to say of which nothing is in the text. (Reasoning may be dropped: several templates
// do.)
void SpanFinder::refuse_lost(int32_t message) const {
  const Dict& fields = *messages_[static_cast<size_t>(message)].dict();
  const bool speaks =
      std::ranges::any_of(std::initializer_list<std::string_view>{"content", "tool_calls"}, [&](std::string_view name) {
        const Value* said = fields.find(name);
        if (said == nullptr) return false;
        return said->is_string() ? !without_end_space(said->view()).empty() : truth(*said);
      });
  if (!speaks || std::ranges::any_of(runs_, [&](const Run& run) { return run.tag.origin == message; })) return;
  throw Error(fmt::format("nothing of message {} (counted from 0) shows in the rendered text", message), syntax_.where,
              "use a template that writes it, or leave the row out");
}

// `certain`: the region begins where a turn does, and only what `opening` says may still be cut from it.
int64_t SpanFinder::begin_of(const Region& region, const std::string& opening, bool certain) const {
  const int64_t own = std::max(region.begin, region.own_begin < 0 ? region.end : region.own_begin);
  const std::string_view before =
      std::string_view(text_).substr(static_cast<size_t>(region.begin), static_cast<size_t>(own - region.begin));
  if (opening.empty()) return region.begin;
  if (const size_t found = before.find(opening); found != std::string_view::npos) {
    return region.begin + static_cast<int64_t>(found + opening.size());
  }
  const size_t common = common_opening(opening, before);
  if (common > 0 || certain) return region.begin + static_cast<int64_t>(common);
  return own;
}

int64_t SpanFinder::end_of(int64_t begin, int64_t end, int32_t message) const {
  int64_t own = begin;
  int64_t run_begin = 0;
  for (const Run& run : runs_) {
    if (run_begin < end && run.end > begin && run.tag.origin == message) own = std::min(end, run.end);
    run_begin = run.end;
  }
  const std::string_view after = std::string_view(text_).substr(static_cast<size_t>(own), static_cast<size_t>(end - own));
  const size_t eos = eos_token_.empty() ? std::string_view::npos : after.find(eos_token_);
  size_t kept = eos != std::string_view::npos ? eos + eos_token_.size() : without_end_space(after).size();
  if (kept == 0) return end;
  while (kept < after.size() && after[kept] == '\n') ++kept;
  return own + static_cast<int64_t>(kept);
}

std::vector<AssistantSpan> SpanFinder::spans_of(int32_t message) {
  refuse_lost(message);
  const auto count = static_cast<size_t>(message);
  const auto before = by_prefixes_ ? prefix(count, true) : std::nullopt;
  const auto plain = by_prefixes_ ? prefix(count, false) : std::nullopt;
  const auto through = by_prefixes_ ? prefix(count + 1, false) : std::nullopt;
  const bool begins = before && text_.starts_with(*before);
  const bool ends = through && text_.starts_with(*through);
  std::vector<Region> regions = regions_of(message);
  if (regions.empty()) {
    if (!begins || !ends || before->size() > through->size()) return {};
    regions.push_back({static_cast<int64_t>(before->size()), static_cast<int64_t>(through->size())});
  }
  // The prompt as it is at this place, where that can be seen: it may depend on the messages before.
  const bool prompted = before && plain && before->starts_with(*plain) && before->size() > plain->size();
  const std::string opening = prompted ? before->substr(plain->size()) : header();
  std::vector<AssistantSpan> spans;
  for (const Region& region : regions) {
    int64_t begin = region.begin;
    if (spans.empty()) {
      if (begins) begin = static_cast<int64_t>(before->size());
      if (!begins || !prompted) begin = begin_of({begin, region.end, region.own_begin, region.own_end}, opening, begins);
    }
    const int64_t limit = ends ? std::min(region.end, static_cast<int64_t>(through->size())) : region.end;
    const int64_t end = end_of(begin, std::max(begin, limit), message);
    if (begin < end) spans.push_back({begin, end, message});
  }
  return spans;
}

}  // namespace snug::chat
