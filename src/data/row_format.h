#pragma once
// What the columns of a row mean: the forms in which people keep training data, told from the names of the first row's
// columns and then held for all rows. Turns a row into text, a prompt with its completion, or a conversation; knows nothing
// of tokens and templates.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/json_value.h"

namespace snug {

// text:              `text`
// prompt_completion: `prompt` and `completion`, both strings or both lists of messages (as TRL has them)
// messages:          `messages` of {role, content, …}; beside them, if there, `tools`, `system` (the first message, as
// axolotl
//                    and LLaMA-Factory have it) and `chat_template_kwargs` (as TRL has it)
// conversations:     `conversations` of {from, value} (ShareGPT) or {role, content}; the same beside them
// instruction:       `instruction`, `output` and, if it is not empty, `input` (Alpaca), put into Stanford's prompt
// question_answer:   `question` and `answer` (GSM8K): the question and a line end, then the answer
// dolly:             `instruction`, `response` and, if it is not empty, `context` (Dolly), put into the same prompt
// query_response:    `query` and `response` (ms-swift), before them the pairs of `history`; the same beside them as messages
// What else people put into such rows and mean to be learned from is refused: images and their like, an instruction's
// `system` and `history`. Other columns are passed over.
enum class RowFormat : uint8_t {
  text,
  prompt_completion,
  messages,
  conversations,
  instruction,
  question_answer,
  dolly,
  query_response
};

// "messages", "prompt/completion": as people say it.
std::string_view name_of(RowFormat format);

// Which columns to take where the names say too little. Empty: as the format has them.
struct ColumnNames {
  std::string format;      // a RowFormat by its name above: "messages"; empty: found from the columns
  std::string text;        // dataset_text_field
  std::string prompt;      // prompt_column: string or list of messages
  std::string completion;  // completion_column
  std::string messages;    // messages_column
};

// A conversation: messages as objects {role, content, …}, of which those marked are learned if the assistant says them.
struct Chat {
  JsonValue messages;
  JsonValue tools;            // a list or null
  JsonValue extra;            // an object or null: further variables of the template
  std::vector<bool> learned;  // by message
};

// One row: of a text row `text`, of a prompt/completion row the pair, of a conversation `chat`.
struct Example {
  std::optional<std::string> text;
  std::string prompt, completion;
  std::optional<Chat> chat;
};

class RowInterpreter {
 public:
  explicit RowInterpreter(ColumnNames names);
  RowInterpreter(RowInterpreter&&) noexcept;
  ~RowInterpreter();

  // Settles the format from the names of columns. Throws Error naming them if none fits or several do.
  void settle(const std::vector<std::string>& columns);

  // None before.
  std::optional<RowFormat> format() const;
  // Columns that every row needs, and those that are read where they are.
  const std::vector<std::string>& required() const;
  const std::vector<std::string>& optional() const;

  // What the row with these fields says. Throws Error, without a place, for rows that lack a column, have one of another
  // type, are empty, or have nothing to learn.
  Example interpret(JsonValue fields);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace snug
