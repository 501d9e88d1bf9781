#include "data/row_format.h"

#include "data/support_rows.h"

namespace snug {
namespace {

using test::expect_mentions;
using test::json_of;
using test::refusal;
using Texts = std::vector<std::string>;

// The example that a row of JSON is, where it is the first one.
struct Reading {
  explicit Reading(ColumnNames names = {}) : interpreter(std::move(names)) {}

  Example operator()(const std::string& json) {
    const auto source = json_row_source(json, "d.jsonl");
    SourceRow row;
    source->next(row);
    Texts columns;
    for (const JsonMember& member : *row.fields.object()) columns.push_back(member.name);
    if (!interpreter.format()) interpreter.settle(columns);
    return interpreter.interpret(row.fields);
  }
  std::string refused(const std::string& json) {
    return refusal([&] { (*this)(json); });
  }
  RowInterpreter interpreter;
};

Example example_of(const std::string& json, ColumnNames names = {}) { return Reading(std::move(names))(json); }
std::string refused(const std::string& json, ColumnNames names = {}) { return Reading(std::move(names)).refused(json); }

TEST(RowFormat, FindsTextAndPairsByTheirColumns) {
  EXPECT_EQ(example_of(R"({"id": 7, "text": "café"})").text, "café");
  const Example pair = example_of(R"({"completion": "b", "prompt": ""})");
  EXPECT_EQ(pair.prompt, "");
  EXPECT_EQ(pair.completion, "b");
  EXPECT_FALSE(pair.text);
  const Example question = example_of(R"({"question": "1+1?", "answer": "2"})");
  EXPECT_EQ(question.prompt, "1+1?\n");
  EXPECT_EQ(question.completion, "2");
}

TEST(RowFormat, PutsInstructionsIntoStanfordsWords) {
  const Example bare = example_of(R"({"instruction": "Say hi.", "input": "", "output": "Hi."})");
  EXPECT_EQ(bare.prompt,
            "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
            "### Instruction:\nSay hi.\n\n### Response:");
  EXPECT_EQ(bare.completion, "Hi.");
  EXPECT_EQ(example_of(R"({"instruction": "Say hi.", "output": "Hi."})").prompt, bare.prompt);
  EXPECT_EQ(example_of(R"({"instruction": "Say hi.", "input": null, "output": "Hi."})").prompt, bare.prompt);
  EXPECT_EQ(example_of(R"({"instruction": "Add.", "input": "1, 2", "output": "3"})").prompt,
            "Below is an instruction that describes a task, paired with an input that provides further context. Write a "
            "response that appropriately completes the request.\n\n"
            "### Instruction:\nAdd.\n\n### Input:\n1, 2\n\n### Response:");
}

TEST(RowFormat, PutsDollysColumnsIntoTheSameWords) {
  const Example alpaca = example_of(R"({"instruction": "Add.", "input": "1, 2", "output": "3"})");
  const Example dolly =
      example_of(R"({"instruction": "Add.", "context": "1, 2", "response": "3", "category": "closed_qa"})");
  EXPECT_EQ(dolly.prompt, alpaca.prompt);
  EXPECT_EQ(dolly.completion, "3");
  EXPECT_EQ(example_of(R"({"instruction": "Say hi.", "context": "", "response": "Hi."})").prompt,
            example_of(R"({"instruction": "Say hi.", "output": "Hi."})").prompt);
  expect_mentions(refused(R"({"instruction": "a", "context": 3, "response": "b"})"), {"\"context\" is a number"});
}

TEST(RowFormat, MakesConversationsOfQueriesAndResponses) {
  const Chat chat =
      *example_of(R"({"system": "Be brief.", "query": "And 2+2?", "response": "4", "history": [["1+1?", "2"]]})").chat;
  const Chat same =
      *example_of(R"({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1+1?"}, )"
                  R"({"role": "assistant", "content": "2"}, {"role": "user", "content": "And 2+2?"}, )"
                  R"({"role": "assistant", "content": "4"}]})")
           .chat;
  EXPECT_EQ(json_of(chat.messages), json_of(same.messages));
  EXPECT_TRUE(chat.learned.at(2) && chat.learned.at(4)) << "earlier responses too, as in ms-swift";
  EXPECT_EQ(example_of(R"({"query": "a", "response": "b"})").chat->messages.list()->size(), 2U);
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"query": "a", "response": "b", "history": "c"})", "\"history\" is a string, not a list"},
      {R"({"query": "a", "response": "b", "history": [["c"]]})", "no pair of strings"},
      {R"({"query": "a", "response": "b", "history": [["c", 3]]})", "no pair of strings"},
      {R"({"query": "a", "response": ""})", "\"response\" is empty"},
      {R"({"query": "a"})", "fit no format"}};
  for (const auto& [row, words] : wrong) expect_mentions(refused(row), {words});
}

TEST(RowFormat, TakesTheColumnsThatAreNamed) {
  const std::string row =
      R"({"question": "q", "answer": "a", "body": "b", "chat": [{"role": "assistant", "content": "c"}]})";
  EXPECT_EQ(example_of(row, {.text = "body"}).text, "b");
  const Example pair = example_of(row, {.prompt = "question", .completion = "answer"});
  EXPECT_EQ(pair.prompt, "q");  // as it stands, without a line end
  EXPECT_TRUE(example_of(row, {.messages = "chat"}).chat);
  EXPECT_EQ(example_of(R"({"instruction": "i", "output": "o", "text": "t"})", {.format = "instruction"}).completion, "o");
  EXPECT_EQ(example_of(R"({"instruction": "i", "output": "o", "text": "t"})", {.text = "text"}).text, "t");
  EXPECT_EQ(example_of(row, {.format = "question_answer", .text = "text"}).completion, "a");  // TRL's default is no wish
  expect_mentions(refused(row, {.text = "title"}), {"no column \"title\"", "\"question\", \"answer\""});
  expect_mentions(refused(row, {.text = "body", .messages = "chat"}), {"several formats"});
  expect_mentions(refused(row, {.format = "chat"}), {"\"chat\" is not known", "messages"});
  expect_mentions(refused(row, {.format = "instruction"}), {"lack \"instruction\""});
}

TEST(RowFormat, NamesTheColumnsSeenWhereNoneOrSeveralFit) {
  expect_mentions(refused(R"({"a": 1, "prompt": "x"})"),
                  {"columns \"a\", \"prompt\" fit no format", "snug knows text; prompt and completion", "prompt_column"});
  expect_mentions(refused(R"({"instruction": "i", "output": "o", "text": "t"})"),
                  {"fit both text and instruction/output", "dataset_format: text or instruction"});
  expect_mentions(refused("{}"), {"no columns"});
}

TEST(RowFormat, HoldsTheOtherRowsToTheFirst) {
  Reading text;
  text(R"({"text": "a"})");
  expect_mentions(text.refused(R"({"prompt": "a", "completion": "b"})"), {"\"text\" is missing"});
  Reading pair;
  pair(R"({"prompt": "a", "completion": "b"})");
  expect_mentions(
      pair.refused(
          R"({"prompt": [{"role": "user", "content": "a"}], "completion": [{"role": "assistant", "content": "b"}]})"),
      {"differs in type from the first"});
}

TEST(RowFormat, RefusesRowsWithNothingToLearn) {
  struct Case {
    const char *row, *what;
  };
  const Case cases[] = {
      {R"({"text": 1})", "\"text\" is a number, not a string"},
      {R"({"text": null})", "\"text\" is null, not a string"},
      {R"({"text": ""})", "\"text\" is empty"},
      {R"({"text": ["a"]})", "\"text\" is a list, not a string"},
      {R"({"prompt": "a", "completion": ""})", "\"completion\" is empty"},
      {R"({"prompt": "a", "completion": 2})", "\"completion\" is a number"},
      {R"({"prompt": [], "completion": "b"})", "\"prompt\" is a list"},
      {R"({"question": "a", "answer": ""})", "\"answer\" is empty"},
      {R"({"instruction": "", "output": "b"})", "\"instruction\" is empty"},
      {R"({"instruction": "a", "input": 3, "output": "b"})", "\"input\" is a number"},
      {R"({"messages": []})", "the conversation is empty"},
      {R"({"messages": "hi"})", "\"messages\" is a string, not a list"},
      {R"({"messages": ["hi"]})", "message 1 is a string, not an object"},
      {R"({"messages": [{"content": "a"}]})", "message 1 has no \"role\""},
      {R"({"messages": [{"role": 3, "content": "a"}]})", "\"role\" that is not a string"},
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant"}]})", "message 2 has no \"content\""},
      {R"({"messages": [{"role": "assistant", "content": 3}]})", "\"content\" that is a number"},
      {R"({"messages": [{"role": "user", "content": "a"}]})", "no assistant message"},
      {R"({"messages": [{"role": "assistant", "content": "a", "weight": 0}]})", "no assistant message"},
      {R"({"messages": [{"role": "assistant", "content": "a", "weight": 0.5}]})", "\"weight\" other than 0 and 1"},
      {R"({"messages": [{"role": "assistant", "content": "a"}], "tools": 3})", "\"tools\" is a number"},
      {R"({"messages": [{"role": "assistant", "content": "a"}], "tools": "[{"})", "not valid JSON"},
      {R"({"messages": [{"role": "assistant", "content": "a"}], "chat_template_kwargs": "x"})",
       "\"chat_template_kwargs\" is a string"},
      {R"({"messages": [{"role": "assistant", "content": "a"}], "system": 3})", "\"system\" is a number"},
      {R"({"messages": [{"role": "system", "content": "s"}, {"role": "assistant", "content": "a"}], "system": "t"})",
       "another within"},
      {R"({"messages": [{"role": "assistant", "content": "a"}], "images": ["x.png"]})", "the row has \"images\""},
      {R"({"text": "a", "image": {"path": "x.png"}})", "the row has \"image\""},
      {R"({"prompt": "a", "completion": "b", "system": "s"})", "the row has \"system\""},
      {R"({"instruction": "a", "output": "b", "system": "s"})", "the row has \"system\""},
      {R"({"instruction": "a", "output": "b", "history": [["c", "d"]]})", "the row has \"history\""},
      {R"({"conversations": [{"from": "alien", "value": "a"}]})", "message 1 is from \"alien\""},
      {R"({"conversations": [{"from": "function_call", "value": "{\"x\": 1}"}]})", "lacks \"name\""},
  };
  for (const Case& c : cases) expect_mentions(refused(c.row), {c.what, "("});
}

std::string learned(const Chat& chat) {
  std::string marks;
  for (const bool mark : chat.learned) marks += mark ? '1' : '0';
  return marks;
}

TEST(Conversations, KeepMessagesAsTheyStand) {
  const Example example = example_of(
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": null, "tool_calls": [{"id": "1"}]}],)"
      R"( "tools": [{"type": "function"}]})");
  EXPECT_EQ(json_of(example.chat->messages),
            R"([{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]}])");
  EXPECT_EQ(json_of(example.chat->tools), R"([{"type":"function"}])");
  EXPECT_EQ(learned(*example.chat), "11");  // the template's spans say which are the assistant's
}

TEST(Conversations, KeepWhatAToolAnsweredAsItIs) {
  const Example example =
      example_of(R"({"messages": [{"role": "user", "content": "a"}, {"role": "tool", "content": {"degrees": [20, 21.5]}},)"
                 R"( {"role": "tool", "content": 7}, {"role": "assistant", "content": "b"}]})");
  EXPECT_EQ(json_of(example.chat->messages),
            R"([{"role":"user","content":"a"},{"role":"tool","content":{"degrees":[20,21.5]}},)"
            R"({"role":"tool","content":7},{"role":"assistant","content":"b"}])");
  expect_mentions(refused(R"({"messages": [{"role": "user", "content": {"a": 1}}, {"role": "assistant", "content": "b"}]})"),
                  {"\"content\" that is an object"});
}

TEST(Conversations, TranslateShareGpt) {
  const Example example = example_of(
      R"({"conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "a"}, {"from": "gpt", "value": "b"},)"
      R"( {"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"x\": 1}}"}, {"from": "observation", "value": "3"},)"
      R"( {"role": "assistant", "content": "c"}], "tools": ""})");
  EXPECT_EQ(
      json_of(example.chat->messages),
      R"([{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},)"
      R"({"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":{"x":1}}}]},)"
      R"({"role":"tool","content":"3"},{"role":"assistant","content":"c"}])");
  EXPECT_TRUE(example.chat->tools.is_null());
}

TEST(Conversations, BeginWithTheSystemBesideThem) {
  for (
      const char* row :
      {R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}], "system": "s"})",
       R"({"conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}], "system": "s"})"}) {
    const Example example = example_of(row);
    EXPECT_EQ(json_of(example.chat->messages),
              R"([{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"}])");
    EXPECT_EQ(example.chat->learned.size(), 3U);
  }
  for (const char* empty : {"null", "\"\""})
    EXPECT_EQ(example_of(std::string(R"({"messages": [{"role": "assistant", "content": "a"}], "images": [], "system": )") +
                         empty + "}")
                  .chat->learned.size(),
              1U);
}

// transformers tells a list without tools from none, and TRL hands the row's variables on.
TEST(Conversations, HandOnWhatTheTemplateAsksFor) {
  const Example example = example_of(
      R"({"messages": [{"role": "assistant", "content": "a"}], "tools": [], "chat_template_kwargs": {"enable_thinking": false}})");
  EXPECT_EQ(json_of(example.chat->tools), "[]");
  EXPECT_EQ(json_of(example.chat->extra), R"({"enable_thinking":false})");
  EXPECT_TRUE(example_of(R"({"messages": [{"role": "assistant", "content": "a"}]})").chat->extra.is_null());
}

TEST(Conversations, TakeMessagesOutOfTheLossThatSaySo) {
  const Example example = example_of(
      R"({"messages": [{"role": "assistant", "content": "a", "weight": 0}, {"role": "assistant", "content": "b", "weight": 1},)"
      R"( {"role": "assistant", "content": "c", "loss": false}, {"role": "assistant", "content": "d", "train": true},)"
      R"( {"role": "assistant", "content": "e", "weight": null}, {"role": "assistant", "content": "f", "train": true, "weight": 0.0}]})");
  EXPECT_EQ(learned(*example.chat), "010110");
  EXPECT_EQ(json_of(example.chat->messages).find("weight"), std::string::npos);
  EXPECT_EQ(json_of(example.chat->messages).find("train"), std::string::npos);
}

TEST(Conversations, LearnOnlyTheCompletionOfPairs) {
  const Example example = example_of(
      R"({"prompt": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],)"
      R"( "completion": [{"role": "assistant", "content": "d"}], "tools": "[{\"name\": \"t\"}]"})");
  EXPECT_EQ(learned(*example.chat), "0001");
  EXPECT_EQ(example.chat->messages.list()->size(), 4U);
  EXPECT_EQ(json_of(example.chat->tools), R"([{"name":"t"}])");
}

}  // namespace
}  // namespace snug
