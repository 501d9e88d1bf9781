// Where the assistant speaks, against hand-written expressions of turns (tests/oracle/chat_spans.py).

#include <algorithm>

#include "chat/support_golden.h"

namespace snug::chat {
namespace {

using namespace snug::test;  // NOLINT(google-build-using-namespace): a test

// The spans as the golden file writes them: "[0, 4]", "None" where the template refuses, "lost" where a message does not
// show.
std::string spans_of(const ChatTemplate& parsed, const Conversation& conversation, const Variables& special) {
  try {
    std::string shown;
    for (const AssistantSpan& span : parsed.render(conversation, special).assistant) {
      shown += std::to_string(span.begin) + " " + std::to_string(span.end) + " ";
    }
    return shown;
  } catch (const Error& error) {
    return error.problem().find("shows in the rendered text") != std::string::npos ? "lost" : "None";
  }
}

std::string expected_spans(const Value& golden) {
  if (golden.is_string()) return golden.text()->bytes();
  if (golden.is(Kind::none)) return "None";
  std::string shown;
  for (const Value& offset : items(golden)) shown += std::to_string(offset.integer()) + " ";
  return shown;
}

TEST(Spans, AreTheTurnsOfTheAssistantInEveryFamilyOfTemplates) {
  const Value conversations = golden_json("conversations.json");
  const Value renders = field(golden_json("renders.json"), "templates");
  const Value families = field(golden_json("spans.json"), "templates");
  int absent = 0;
  for (const Value& family : items(families)) {
    const std::string name = text_field(family, "template");
    const auto source = template_source(name);
    absent += source ? 0 : 1;
    if (!source) continue;
    const ChatTemplate parsed = parse_with_clock(*source, name);
    const auto row =
        std::ranges::find_if(items(renders), [&](const Value& entry) { return text_field(entry, "template") == name; });
    const Variables special = variables_of(field(*row, "special"));
    for (const Value& conversation : items(conversations)) {
      const Value golden = field(field(family, "spans"), text_field(conversation, "name"));
      if (golden.is_undefined()) continue;
      EXPECT_EQ(spans_of(parsed, conversation_of(conversation, false), special), expected_spans(golden))
          << name << ", " << text_field(conversation, "name");
    }
  }
  if (absent > 0) GTEST_SKIP() << absent << " published templates are not here; ours passed";
}

Rendered render(const std::string& source, const std::string& messages) {
  Conversation conversation;
  conversation.messages = parse_json(messages, "m");
  return ChatTemplate::parse(source, "t").render(conversation, {{"eos_token", "</s>"}});
}

std::vector<std::string> spoken(const Rendered& rendered) {
  std::vector<std::string> texts;
  for (const AssistantSpan& span : rendered.assistant) {
    texts.push_back(rendered.text.substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin)));
  }
  return texts;
}

const std::string kTurns =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>\n{% endfor %}{% if add_generation_prompt %}<assistant>{% "
    "endif %}";

TEST(Spans, LeaveOutMessagesThatTakeNoLoss) {
  const Rendered rendered =
      render(kTurns, R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "weight": 0},
      {"role": "assistant", "content": "b", "loss": false}, {"role": "assistant", "content": "c", "train": false},
      {"role": "assistant", "content": "d", "weight": 1}])");
  EXPECT_EQ(spoken(rendered), std::vector<std::string>{"d</s>\n"});
  EXPECT_EQ(rendered.assistant[0].message, 4);
}

TEST(Spans, AreFoundTheSameWayInLongConversations) {  // where prefixes are not rendered
  std::string messages = "[";
  for (int i = 0; i < 60; ++i) messages += R"({"role": "user", "content": "q"}, {"role": "assistant", "content": "a"},)";
  messages.back() = ']';
  const Rendered rendered = render(kTurns, messages);
  EXPECT_EQ(spoken(rendered), std::vector<std::string>(60, "a</s>\n"));
}

TEST(Spans, FollowTheMessageThroughStringOperations) {
  const char* source =
      "{% for m in messages %}{% if m.role == 'assistant' %}{% set t = m.content.split('</think>')[-1]|trim|upper %}"
      "{% if not loop.last %}{{ 'A: ' ~ t.replace('X', 'yy') ~ ' /A\n' }}{% else %}{{ 'A: <think>' + m.content + '\n' }}{% "
      "endif %}"
      "{% else %}{{ m.role[0]|upper }}: {{ m.content }}\n{% endif %}{% endfor %}{% if add_generation_prompt %}A: {% endif "
      "%}";
  const Rendered rendered =
      render(source, R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "no</think> xa x "},
      {"role": "user", "content": "A: r"}, {"role": "assistant", "content": "end"}])");
  EXPECT_EQ(spoken(rendered), (std::vector<std::string>{"yyA yy /A\n", "<think>end\n"}));
}

TEST(Spans, AreNotGuessedWhereAMessageDoesNotShow) {
  const char* messages =
      R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": [{"type": "text", "text": "a"}]}])";
  const char* source = "{% for m in messages %}<{{ m.role }}>{{ m.content if m.content is string else '' }}</s>{% endfor %}";
  EXPECT_NE(refusal([&] { render(source, messages); }).find("nothing of message 1 (counted from 0) shows"),
            std::string::npos);
}

TEST(Spans, AreThoseThatTheTemplateMarks) {
  const char* source =
      "{% for m in messages %}[{% if m.role == 'assistant' %}{% generation %}{{ m.content }}!{% endgeneration %}{% else "
      "%}{{ m.content }}{% endif %}]{% endfor %}";
  const Rendered rendered = render(source, R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"},
      {"role": "assistant", "content": "b"}])");
  EXPECT_EQ(rendered.text, "[q][a!][b!]");
  EXPECT_EQ(rendered.assistant, (std::vector<AssistantSpan>{{4, 6, 1}, {8, 10, 2}}));
}

}  // namespace
}  // namespace snug::chat
