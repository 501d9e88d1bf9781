#include "data/row_format.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "data/conversation.h"

namespace snug {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kKnown =
    "snug knows text; prompt and completion; messages; conversations; instruction and output or response; question and "
    "answer; "
    "query and response; or name yours: dataset_text_field, prompt_column and completion_column, or messages_column";

constexpr std::string_view kKwargs = "chat_template_kwargs";
constexpr std::array<std::string_view, 6> kMedia = {"images", "image", "videos", "video", "audios", "audio"};

struct Known {
  RowFormat format;
  std::string_view key;   // of ColumnNames::format
  std::string_view name;  // for people
  std::array<std::string_view, 2> required;
  std::array<std::string_view, 4> optional;
};

constexpr std::array<Known, 8> kFormats = {{
    {RowFormat::text, "text", "text", {"text"}, {}},
    {RowFormat::prompt_completion,
     "prompt_completion",
     "prompt/completion",
     {"prompt", "completion"},
     {"tools", "system", kKwargs}},
    {RowFormat::messages, "messages", "messages", {"messages"}, {"tools", "system", kKwargs}},
    {RowFormat::conversations, "conversations", "conversations", {"conversations"}, {"tools", "system", kKwargs}},
    {RowFormat::instruction, "instruction", "instruction/output", {"instruction", "output"}, {"input", "system", "history"}},
    {RowFormat::question_answer, "question_answer", "question/answer", {"question", "answer"}, {}},
    {RowFormat::dolly, "dolly", "instruction/response", {"instruction", "response"}, {"context", "system", "history"}},
    {RowFormat::query_response,
     "query_response",
     "query/response",
     {"query", "response"},
     {"history", "tools", "system", kKwargs}},
}};

const Known& known(RowFormat format) { return kFormats[static_cast<size_t>(format)]; }

bool contains(const Names& names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }

// "the columns "a", "b"", of which at most ten are named.
std::string columns_seen(const Names& columns) {
  constexpr size_t kMost = 10;
  if (columns.empty()) return "the row has no columns";
  std::string text = columns.size() == 1 ? "the column " : "the columns ";
  for (size_t i = 0; i < std::min(columns.size(), kMost); ++i) text += (i == 0 ? "" : ", ") + quote(columns[i]);
  if (columns.size() > kMost) text += " and " + std::to_string(columns.size() - kMost) + " more";
  return text;
}

[[noreturn]] void refuse_row(const std::string& what, const std::string& mend) { throw Error(what, {}, mend); }

// The prompts of Stanford Alpaca, tatsu-lab/stanford_alpaca, train.py, PROMPT_DICT, word for word; the output follows
// directly.
std::string alpaca_prompt(std::string_view instruction, std::string_view input) {
  std::string text;
  if (input.empty()) {
    text =
        "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
        "### Instruction:\n";
    return text.append(instruction).append("\n\n### Response:");
  }
  text =
      "Below is an instruction that describes a task, paired with an input that provides further context. Write a response "
      "that appropriately completes the request.\n\n### Instruction:\n";
  return text.append(instruction).append("\n\n### Input:\n").append(input).append("\n\n### Response:");
}

}  // namespace

std::string_view name_of(RowFormat format) { return known(format).name; }

struct RowInterpreter::State {
  ColumnNames names;
  std::optional<RowFormat> format;
  Names required, optional;
  std::optional<bool> chat_pairs;  // prompt and completion are lists of messages
  JsonRowParser parser;

  void take(RowFormat found, Names columns) {
    format = found;
    required = std::move(columns);
    optional.assign(kMedia.begin(), kMedia.end());
    for (const std::string_view name : known(found).optional)
      if (!name.empty()) optional.emplace_back(name);
    std::erase_if(optional, [&](const std::string& name) { return contains(required, name); });
  }

  void take(const Known& found, const Names& columns) {
    Names wanted;
    for (const std::string_view name : found.required)
      if (!name.empty()) wanted.emplace_back(name);
    for (const std::string& name : wanted)
      if (!contains(columns, name))
        refuse_row(columns_seen(columns) + " lack " + quote(name), "every " + std::string(found.name) + " row needs it");
    take(found.format, std::move(wanted));
  }

  // Columns that the user has named. False if there are none.
  bool take_named(const Names& columns) {
    // TRL's default says nothing where another format is meant.
    const bool text = !names.text.empty() && (names.text != "text" || contains(columns, "text"));
    const bool pair = !names.prompt.empty() || !names.completion.empty();
    const bool chat = !names.messages.empty();
    if (static_cast<int>(text) + static_cast<int>(pair) + static_cast<int>(chat) > 1)
      refuse_row("columns of several formats are named",
                 "keep one of dataset_text_field, prompt_column and completion_column, messages_column");
    if (text) take(RowFormat::text, {names.text});
    if (pair)
      take(RowFormat::prompt_completion,
           {names.prompt.empty() ? "prompt" : names.prompt, names.completion.empty() ? "completion" : names.completion});
    if (chat) take(RowFormat::messages, {names.messages});
    if (!text && !pair && !chat) return false;
    for (const std::string& name : required)
      if (!contains(columns, name))
        refuse_row("there is no column " + quote(name) + " among " + columns_seen(columns), "name one of them");
    return true;
  }

  bool take_format(const Names& columns) {
    if (names.format.empty()) return false;
    const auto found = std::ranges::find(kFormats, names.format, &Known::key);
    if (found == kFormats.end())
      refuse_row(
          "the format " + quote(names.format) + " is not known",
          "give text, prompt_completion, messages, conversations, instruction, question_answer, dolly or query_response");
    take(*found, columns);
    return true;
  }

  void take_fitting(const Names& columns) {
    std::vector<const Known*> fitting;
    for (const Known& candidate : kFormats) {
      const bool fits = std::ranges::all_of(candidate.required,
                                            [&](std::string_view name) { return name.empty() || contains(columns, name); });
      if (fits) fitting.push_back(&candidate);
    }
    if (fitting.empty()) refuse_row(columns_seen(columns) + " fit no format", kKnown);
    if (fitting.size() > 1) {
      refuse_row(
          columns_seen(columns) + " fit both " + std::string(fitting[0]->name) + " and " + std::string(fitting[1]->name),
          "say which: dataset_format: " + std::string(fitting[0]->key) + " or " + std::string(fitting[1]->key));
    }
    take(*fitting.front(), columns);
  }

  // The field `name`, taken out of the row.
  static JsonValue require(JsonValue::Object& fields, const std::string& name) {
    const auto found = std::ranges::find(fields, name, &JsonMember::name);
    if (found == fields.end()) refuse_row(quote(name) + " is missing", "every row needs the columns of the first one");
    return std::move(found->value);
  }

  static std::string text_of(JsonValue::Object& fields, const std::string& name, bool may_be_empty) {
    const JsonValue value = require(fields, name);
    const std::string* text = value.string();
    if (text == nullptr)
      refuse_row(quote(name) + " is " + std::string(value.type_name()) + ", not a string", "give a string");
    if (text->empty() && !may_be_empty) refuse_row(quote(name) + " is empty", "fill it or remove the row");
    return *text;
  }

  static JsonValue optional_of(JsonValue::Object& fields, std::string_view name) {
    const auto found = std::ranges::find(fields, name, &JsonMember::name);
    return found == fields.end() ? JsonValue() : std::move(found->value);
  }

  static bool is_empty(const JsonValue& value) {
    if (const std::string* text = value.string()) return text->empty();
    if (const JsonValue::List* list = value.list()) return list->empty();
    return value.is_null();
  }

  // Refuses a row whose column would be lost without a word.
  static void refuse_lost(JsonValue::Object& fields, std::string_view name, const std::string& why,
                          const std::string& mend) {
    if (!is_empty(optional_of(fields, name))) refuse_row("the row has " + quote(std::string(name)) + ", " + why, mend);
  }

  void refuse_media(JsonValue::Object& fields) const {
    for (const std::string_view name : kMedia)
      if (!contains(required, name))
        refuse_lost(fields, name, "and snug learns from text alone", "leave the row out, or empty the column");
  }

  // `system` beside the messages is the first of them.
  static void add_system(JsonValue::Object& fields, Chat& chat) {
    JsonValue system = optional_of(fields, "system");
    if (is_empty(system)) return;
    if (system.string() == nullptr)
      refuse_row(R"("system" is )" + std::string(system.type_name()) + ", not a string", "give a string");
    JsonValue::List& messages = *chat.messages.list();
    const JsonValue* role = messages.empty() ? nullptr : messages.front().find("role");
    if (role != nullptr && *role->string() == "system") {
      const JsonValue* content = messages.front().find("content");
      const bool same = content != nullptr && content->string() != nullptr && *content->string() == *system.string();
      if (!same) refuse_row(R"(the row has a "system" beside the conversation and another within)", "keep one");
      return;
    }
    messages.insert(messages.begin(), JsonValue(JsonValue::Object{{"role", JsonValue(std::string_view("system"))},
                                                                  {"content", std::move(system)}}));
    chat.learned.insert(chat.learned.begin(), false);
  }

  Example pair(JsonValue::Object& fields) {
    JsonValue prompt = require(fields, required[0]);
    JsonValue completion = require(fields, required[1]);
    const bool lists = prompt.list() != nullptr && completion.list() != nullptr;
    const bool strings = prompt.string() != nullptr && completion.string() != nullptr;
    if (!lists && !strings) {
      const bool first = prompt.string() == nullptr;
      refuse_row(quote(required[first ? 0 : 1]) + " is " + std::string((first ? prompt : completion).type_name()) +
                     ", not a string",
                 "give two strings, or two lists of messages");
    }
    if (chat_pairs.value_or(lists) != lists)
      refuse_row("the row differs in type from the first one", "give strings or messages throughout");
    chat_pairs = lists;
    Example example;
    if (strings) {
      example.prompt = *prompt.string();
      example.completion = *completion.string();
      if (example.completion.empty()) refuse_row(quote(required[1]) + " is empty", "fill it or remove the row");
      refuse_lost(fields, "system", "and two strings have no place for it", "put it into the prompt, or give messages");
      return example;
    }
    Chat chat;
    add_messages(prompt, required[0], false, parser, chat);
    add_messages(completion, required[1], true, parser, chat);
    return conversation(std::move(chat), fields);
  }

  Example conversation(Chat chat, JsonValue::Object& fields) {
    if (chat.learned.empty()) refuse_row("the conversation is empty", "fill it or remove the row");
    bool learns = false;
    for (size_t i = 0; i < chat.learned.size(); ++i) {
      const std::string* role = (*chat.messages.list())[i].find("role")->string();
      learns = learns || (chat.learned[i] && *role == "assistant");
    }
    if (!learns) refuse_row("the conversation has no assistant message to learn", "add one or remove the row");
    add_system(fields, chat);
    chat.tools = read_tools(optional_of(fields, "tools"), parser);
    if (format == RowFormat::conversations || format == RowFormat::query_response) wrap_functions(chat.tools);
    chat.extra = optional_of(fields, kKwargs);
    if (!chat.extra.is_null() && chat.extra.object() == nullptr)
      refuse_row(quote(std::string(kKwargs)) + " is " + std::string(chat.extra.type_name()) + ", not an object",
                 "give an object");
    Example example;
    example.chat = std::move(chat);
    return example;
  }

  Example chat(JsonValue::Object& fields) {
    JsonValue list = require(fields, required[0]);
    Chat chat;
    add_messages(list, required[0], true, parser, chat);
    return conversation(std::move(chat), fields);
  }

  // An instruction, more to it in the column `more` if there is any, and what answers it in the second required one.
  Example instruction(JsonValue::Object& fields, const std::string& more) const {
    for (const char* name : {"system", "history"})
      refuse_lost(fields, name, "and Alpaca's prompt has no place for it",
                  "give messages in place of instruction and " + required[1]);
    const std::string asked = text_of(fields, "instruction", false);
    const JsonValue input = optional_of(fields, more);
    if (!input.is_null() && input.string() == nullptr)
      refuse_row(quote(more) + " is " + std::string(input.type_name()) + ", not a string", "give a string");
    Example example;
    example.prompt = alpaca_prompt(asked, input.is_null() ? std::string_view() : *input.string());
    example.completion = text_of(fields, required[1], false);
    return example;
  }

  static void add_turn(JsonValue::List& messages, JsonValue query, JsonValue response) {
    const auto add = [&](std::string_view role, JsonValue content) {
      messages.push_back(JsonValue(JsonValue::Object{{"role", JsonValue(role)}, {"content", std::move(content)}}));
    };
    add("user", std::move(query));
    add("assistant", std::move(response));
  }

  // The pairs of `history`, then the one of query and response.
  Example turns(JsonValue::Object& fields) {
    JsonValue::List messages;
    JsonValue history = optional_of(fields, "history");
    if (!is_empty(history)) {
      JsonValue::List* const pairs = history.list();
      if (pairs == nullptr)
        refuse_row(R"("history" is )" + std::string(history.type_name()) + ", not a list",
                   "give pairs of query and response");
      for (JsonValue& pair : *pairs) {
        JsonValue::List* const both = pair.list();
        const bool strings =
            both != nullptr && both->size() == 2 && (*both)[0].string() != nullptr && (*both)[1].string() != nullptr;
        if (!strings) refuse_row(R"("history" holds what is no pair of strings)", "give pairs of query and response");
        add_turn(messages, std::move((*both)[0]), std::move((*both)[1]));
      }
    }
    JsonValue query(text_of(fields, "query", false)), response(text_of(fields, "response", false));
    add_turn(messages, std::move(query), std::move(response));
    JsonValue list(std::move(messages));
    Chat chat;
    add_messages(list, "history", true, parser, chat);
    return conversation(std::move(chat), fields);
  }
};

RowInterpreter::RowInterpreter(ColumnNames names) : state_(std::make_unique<State>()) { state_->names = std::move(names); }
RowInterpreter::RowInterpreter(RowInterpreter&&) noexcept = default;
RowInterpreter::~RowInterpreter() = default;

void RowInterpreter::settle(const std::vector<std::string>& columns) {
  if (state_->take_named(columns)) return;
  if (state_->take_format(columns)) return;
  state_->take_fitting(columns);
}

std::optional<RowFormat> RowInterpreter::format() const { return state_->format; }
const Names& RowInterpreter::required() const { return state_->required; }
const Names& RowInterpreter::optional() const { return state_->optional; }

Example RowInterpreter::interpret(JsonValue fields) {
  State& state = *state_;
  JsonValue::Object& row = *fields.object();
  state.refuse_media(row);
  Example example;
  switch (*state.format) {
    case RowFormat::text: example.text = State::text_of(row, state.required[0], false); return example;
    case RowFormat::prompt_completion: return state.pair(row);
    case RowFormat::messages:
    case RowFormat::conversations: return state.chat(row);
    case RowFormat::instruction: return state.instruction(row, "input");
    case RowFormat::dolly: return state.instruction(row, "context");
    case RowFormat::query_response: return state.turns(row);
    case RowFormat::question_answer:
      example.prompt = State::text_of(row, "question", true) + "\n";
      example.completion = State::text_of(row, "answer", false);
      return example;
  }
  return example;
}

}  // namespace snug
