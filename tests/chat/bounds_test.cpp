// Hostile templates and conversations end in one line, soon, and in bounded memory.

#include <ctime>

#include "chat/support_golden.h"

namespace snug::chat {
namespace {

using namespace snug::test;  // NOLINT(google-build-using-namespace): a test

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string many_names(int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += "n" + std::to_string(i) + "=1,";
  all.pop_back();
  return all;
}

std::string render(const std::string& source) {
  Conversation conversation;
  conversation.messages = parse_json(R"([{"role": "user", "content": "x"}])", "m");
  return ChatTemplate::parse(source, "t").render_text(conversation, {});
}

TEST(Bounds, EndHostileTemplates) {
  const std::string doubling =
      "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}";
  const std::string loop = "{% for i in range(100000) %}";
  const std::pair<std::string, const char*> cases[] = {
      {loop + loop + "x{% endfor %}{% endfor %}", "5 million steps"},
      {loop + loop + "{% endfor %}{% endfor %}", "5 million steps"},
      {"{{ range(10**15) }}", "100000 numbers"},
      {"{{ 'a' * 10**9 }}", "64 MiB"},
      {"{{ [0] * 10**12 }}", ""},
      {doubling, "64 MiB"},
      {"{% set ns = namespace(x=[0]) %}" + loop + "{% set ns.x = ns.x + ns.x %}{% endfor %}", ""},
      {"{% set ns = namespace(x=[]) %}" + loop + "{% set ns.x = [ns.x] %}{% endfor %}", "nest more than"},
      {"{% set ns = namespace(x={}) %}" + loop + "{% set ns.x = {'a': ns.x, 'b': ns.x} %}{% endfor %}{{ ns.x }}", ""},
      {"{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
       "5 million steps"},
      {"{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|tojson }}",
       "5 million steps"},
      {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "calls itself too deeply"},
      {"{% macro f(n) %}{% for i in [1, 2] %}{{ f(n + 1) }}{% endfor %}{% endmacro %}{{ f(0) }}", "calls itself too deeply"},
      {"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "calls itself too deeply"},
      {"{{ 9 ** 99 }}", "63 bits"},
      {"{{ 99999999999999999999 }}", "63 bits"},
      {"{{ 'x'|center(10**10) }}", "64 MiB"},
      {"{{ '%999999999d' % 1 }}", ""},
      {"{{ '{:>999999999}'.format(1) }}", ""},
      {"{{ 'x'.ljust(10**9) }}", "64 MiB"},
      {"{{ 'ab'|indent(10**9) }}", "wider than"},
      {"{{ ('a' * 10**7).replace('', 'b' * 100) }}", ""},
      {"{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}", "nests too deeply"},
      {"{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}", "nests too deeply"},
      {"{{ " + repeated("-", 5000) + "1 }}", "nests too deeply"},
      {"{{ " + repeated("not ", 5000) + "1 }}", "nests too deeply"},
      {"{{ 1" + repeated(" + 1", 5000) + " }}", "nests too deeply"},
      {"{{ x" + repeated(".y", 5000) + " }}", "nests too deeply"},
      {"{{ x" + repeated("|upper", 5000) + " }}", "nests too deeply"},
      {"{{ 1" + repeated(" if 1 else 1", 5000) + " }}", "nests too deeply"},
      {repeated("{% if 1 %}", 5000), "nests too deeply"},
      {repeated("{% for i in [1] %}", 100), "nests too deeply"},
      {std::string(size_t{2} << 20U, 'x'), "longer than 1 MiB"},
      {"{{ 'a\xff' }}", "not valid UTF-8"},
      {"{% set l = range(100000)|list %}" + loop + loop + "{% set x = l|list %}{% endfor %}{% endfor %}", "5 million steps"},
      {"{% set s = 'a' * 30000000 %}" + loop + "{% set x = s.startswith(s) and s|safe %}{% endfor %}", "5 million steps"},
      {"{{ dict(" + many_names(2000) + ") }}", "1000 named arguments"},
      {"{% macro f(" + many_names(2000) + ") %}{% endmacro %}", "1000 parameters"},
      {"{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}", "holds itself"},
      {"{% set s = 'a' * 30000000 %}{% for i in range(1000) %}{{ s.find('b') }}{% endfor %}", "5 million steps"},
      {"{% set s = 'a' * 10000000 %}{{ s.find('a' * 5000000 + 'b') }}{{ s.rfind('b' + 'a' * 5000000) }}{{ s.rsplit('b' + "
       "s[:999])|length }}{{ raise_exception('end') }}",
       "end"},
  };
  for (const auto& [source, message] : cases) {
    const std::clock_t begin = std::clock();  // of the processor: the machine may be busy
    const std::string said = refusal([&, text = source] { render(text); });
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    EXPECT_FALSE(said.empty()) << source.substr(0, 100);
    EXPECT_NE(said.find(message), std::string::npos) << source.substr(0, 100) << "\n" << said;
    EXPECT_EQ(said.find('\n'), std::string::npos);
    EXPECT_LT(said.size(), 1200U);
    EXPECT_LT(seconds, 20.0) << source.substr(0, 100);  // about one; much more under a sanitizer
  }
}

TEST(Bounds, LetGoOfWhatHoldsItself) {  // seen by the leak sanitizer
  EXPECT_EQ(
      render("{% set a = namespace() %}{% set a.b = namespace(a=a) %}{% macro f() %}{% endmacro %}{% set a.f = f %}ok"),
      "ok");
  const std::string chain =
      "{% set ns = namespace(head=namespace()) %}{% set ns.tail = ns.head %}{% for i in range(50000) %}{% set t = ns.tail %}"
      "{% set t.next = namespace() %}{% set ns.tail = t.next %}{% endfor %}ok";
  EXPECT_EQ(render(chain), "ok");
}

TEST(Bounds, RefuseConversationsThatAreNone) {
  const auto said = [](const char* messages) {
    return refusal([&] {
      Conversation conversation;
      conversation.messages = parse_json(messages, "m");
      ChatTemplate::parse("{{ messages }}", "t").render(conversation, {});
    });
  };
  EXPECT_NE(said("[]").find("no messages"), std::string::npos);
  EXPECT_NE(said("{}").find("must be a list"), std::string::npos);
  EXPECT_NE(said("[1]").find("message 0 must be an object"), std::string::npos);
  EXPECT_NE(said(R"([{"role": "\ud83d"}])").find("not valid JSON"), std::string::npos);
  EXPECT_NE(said(R"([{"n": 18446744073709551615}])").find("63 bits"), std::string::npos);
  EXPECT_NE(said((repeated("[", 900) + repeated("]", 900)).c_str()).find("nest more than"), std::string::npos);
}

}  // namespace
}  // namespace snug::chat
