// Small templates against jinja2 itself (tests/oracle/chat_snippets.py): the same text, or an Error where it raises.

#include "chat/support_golden.h"

namespace snug::chat {
namespace {

using namespace snug::test;  // NOLINT(google-build-using-namespace): a test

std::string outcome(const std::string& source, const Conversation& conversation) {
  try {
    return "text: " + parse_with_clock(source, "t").render_text(conversation, {});
  } catch (const Error&) {
    return "error";
  }
}

TEST(Snippets, PrintWhatJinjaPrints) {
  const Value golden = golden_json("snippets.json");
  Conversation conversation;
  conversation.messages = field(field(golden, "variables"), "messages");
  conversation.extra = field(golden, "variables");
  for (const Value& snippet : items(field(golden, "snippets"))) {
    const std::string source = items(snippet)[0].text()->bytes();
    const Value& expected = items(snippet)[1];
    EXPECT_EQ(outcome(source, conversation), expected.is_string() ? "text: " + expected.text()->bytes() : "error") << source;
  }
  EXPECT_GT(items(field(golden, "snippets")).size(), 1200U);
}

TEST(Snippets, RefuseByNameWhatIsLeftOut) {
  Conversation conversation;
  conversation.messages = parse_json(R"([{"role": "user", "content": "x"}])", "m");
  const std::pair<const char*, const char*> cases[] = {
      {"a\n{% include 'x' %}", "t:2: the tag \"include\" is not supported"},
      {"{% unknown %}", "t:1: unknown tag \"unknown\""},
      {"{{ 'x'|wordwrap }}", "the filter \"wordwrap\" is not supported"},
      {"{{ 'x'|nope }}", "t:1: there is no filter \"nope\""},
      {"{{ 'x' is nope }}", "t:1: there is no test \"nope\""},
      {"{{ lipsum() }}", "lipsum is not supported"},
      {"{{ 'x'.encode() }}", "the method \"encode\" is not supported"},
      {"{{ '\\N{BULLET}' }}", "characters by name"},
      {"\n\n{{ messages[0].content + 1 }}", "t:3: '+' cannot be applied to 'str' and 'int' in \"messages[0].content + 1\""},
      {"{{ [].append(1) }}", "'append' would change a list, which templates may not"},
      {"{{ messages|map('upper') }}", "a generator is printed"},
      {"{{ nothing.here }}", "'nothing' is undefined"},
      {"{{ messages[0].nope.deep }}", "'dict object' has no attribute 'nope'"},
      {"{{ 9223372036854775807 + 1 }}", "a whole number does not fit in 63 bits"},
      {"{{ raise_exception('roles must alternate') }}", "the template refuses this conversation: roles must alternate"},
      {"{% for x in messages %}", "t:1: {% endfor %} is missing"},
  };
  for (const auto& [source, message] : cases) {
    const std::string said = refusal([&, text = source] { ChatTemplate::parse(text, "t").render_text(conversation, {}); });
    EXPECT_NE(said.find(message), std::string::npos) << source << "\n" << said;
  }
}

}  // namespace
}  // namespace snug::chat
