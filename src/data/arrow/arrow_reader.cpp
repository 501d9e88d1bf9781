#include "data/arrow/arrow_reader.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "data/arrow/damaged.h"
#include "data/naming.h"

namespace snug::arrow {
namespace {

constexpr size_t kNodeBytes = 48;  // what an element costs beside its text

}  // namespace

ArrowReader::ArrowReader(const std::filesystem::path& file)
    : where_(file.string()), file_(file, "give an Arrow file that can be read") {
  naming(where_, [&] {
    messages_ = std::make_unique<MessageReader>(file_);
    const std::optional<Message> first = messages_->next();
    if (!first || first->kind != MessageKind::schema) damaged("it does not begin with a schema");
    schema_ = read_schema(first->header);
  });
}

std::vector<std::string> ArrowReader::columns() const {
  std::vector<std::string> names;
  for (const Field& field : schema_) names.push_back(field.name);
  return names;
}

void ArrowReader::select(const std::vector<std::string>& names) {
  wanted_.clear();
  dictionary_fields_.clear();
  for (const std::string& name : names) {
    const auto found = std::ranges::find(schema_, name, &Field::name);
    if (found == schema_.end())
      throw Error("column " + quote(name) + " is missing", where_, "every file needs the columns of the first one");
    wanted_.push_back(static_cast<size_t>(found - schema_.begin()));
    naming(where_, [&] { want_dictionaries(*found); });
  }
}

void ArrowReader::want_dictionaries(const Field& field) {
  for (const Field& child : field.children) want_dictionaries(child);
  if (!field.dictionary) return;
  constexpr int kBitmapOffsetsBytes = 3;
  Field values = field;
  values.dictionary.reset();
  values.buffers = kBitmapOffsetsBytes;
  const auto there = dictionary_fields_.emplace(field.dictionary->id, std::move(values)).first;
  if (there->second.width != field.width) damaged("two columns share a dictionary and have different types");
}

// Opens the next batch that has rows; false if there is none.
bool ArrowReader::open_batch() {
  while (!at_end_) {
    const std::optional<Message> message = messages_->next();
    at_end_ = !message;
    if (at_end_) break;
    if (message->kind == MessageKind::schema) damaged("it has two schemas");
    if (message->kind == MessageKind::dictionary) open_dictionary(*message);
    if (message->kind == MessageKind::batch) open_arrays(*message);
    if (batch_rows_ > 0) return true;
  }
  return false;
}

void ArrowReader::open_arrays(const Message& message) {
  BatchReader batch(file_, message, message.header);
  arrays_.clear();
  for (size_t i = 0; i < schema_.size(); ++i) {
    arrays_.emplace_back();
    if (std::ranges::find(wanted_, i) == wanted_.end()) {
      batch.pass(schema_[i]);
      continue;
    }
    arrays_.back() = batch.take(schema_[i]);
    if (arrays_.back()->length() != batch.rows()) damaged("a column has another length than its batch");
  }
  batch.finish();
  batch_rows_ = batch.rows();
  batch_row_ = 0;
}

void ArrowReader::open_dictionary(const Message& message) {
  enum Place : uint8_t { kId = 0, kData = 1, kIsDelta = 2 };
  const auto id = message.header.number<int64_t>(kId, 0);
  const auto field = dictionary_fields_.find(id);
  if (field == dictionary_fields_.end()) return;
  const std::optional<Table> data = message.header.table(kData);
  if (!data) damaged("a dictionary has no values");
  BatchReader batch(file_, message, *data);
  Array values = batch.take(field->second);
  batch.finish();
  if (values.length() != batch.rows()) damaged("a dictionary has another length than it declares");
  if (message.header.number<uint8_t>(kIsDelta, 0) == 0) dictionaries_.erase(id);
  dictionaries_[id].append(std::move(values));
}

bool ArrowReader::next(JsonValue& row, std::string& problem) {
  return naming(where_, [&] {
    if (batch_row_ == batch_rows_) {
      batch_row_ = batch_rows_ = 0;
      if (!open_batch()) return false;
    }
    ++row_number_;
    row_bytes_ = 0;
    problem_.clear();
    JsonValue::Object members;
    for (const size_t place : wanted_) members.push_back({schema_[place].name, value(*arrays_[place], batch_row_)});
    ++batch_row_;
    row = JsonValue(std::move(members));
    problem = problem_;
    return true;
  });
}

// False once the row is too large: then no more of it is read.
bool ArrowReader::spend(size_t bytes) {
  row_bytes_ += bytes + kNodeBytes;
  if (row_bytes_ > kMostRowBytes) problem_ = "the row is larger than 64 MiB";
  return problem_.empty();
}

JsonValue ArrowReader::value(Array& array, int64_t i) {
  const Field& field = array.field();
  if (array.is_null(i)) return {};
  switch (field.kind) {
    case Kind::null: return {};
    case Kind::boolean: return JsonValue(array.boolean(i));
    case Kind::integer: {
      const int64_t number = array.integer(i);
      const bool large = !field.is_signed && number < 0;  // of 64 bits, as JSON's large numbers
      return large ? JsonValue(static_cast<double>(static_cast<uint64_t>(number))) : JsonValue(number);
    }
    case Kind::real: return JsonValue(array.real(i));
    case Kind::text: return text(array, i);
    case Kind::list:
    case Kind::fixed_list: return list(array, i);
    case Kind::object: return object(array, i);
    case Kind::map: return map(array, i);
    case Kind::bytes: break;
  }
  unsupported("column " + quote(field.path) + " of type " + field.type);
}

JsonValue ArrowReader::text(Array& array, int64_t i) {
  const Field& field = array.field();
  std::string_view text;
  if (field.dictionary) {
    const auto dictionary = dictionaries_.find(field.dictionary->id);
    if (dictionary == dictionaries_.end()) damaged("column " + quote(field.path) + " has no dictionary");
    const std::optional<std::string>& entry = dictionary->second.at(array.index(i));
    if (!entry || !spend(entry->size())) return {};
    text = *entry;
  } else {
    const Array::Range range = array.range(i);
    if (!spend(static_cast<size_t>(range.end - range.begin))) return {};
    text = array.text(range);
  }
  if (!is_utf8(text)) {
    problem_ = "column " + quote(field.path) + " is not UTF-8";
    return {};
  }
  if (!field.json) return JsonValue(text);
  try {
    return json_.parse_value(text);
  } catch (const Error& error) {
    problem_ = "column " + quote(field.path) + ": " + error.problem();
    return {};
  }
}

JsonValue ArrowReader::list(Array& array, int64_t i) {
  const auto [begin, end] = array.range(i);
  JsonValue::List elements;
  for (int64_t k = begin; k < end && spend(0); ++k) elements.push_back(value(array.children().front(), k));
  return JsonValue(std::move(elements));
}

JsonValue ArrowReader::object(Array& array, int64_t i) {
  JsonValue::Object members;
  members.reserve(array.children().size());
  for (Array& child : array.children()) {
    const std::string& name = child.field().name;
    if (!spend(name.size())) break;
    JsonValue member = value(child, i);
    if (!member.is_null() || name == "content") members.push_back({name, std::move(member)});
  }
  return JsonValue(std::move(members));
}

// An object of a map, whose keys are strings.
JsonValue ArrowReader::map(Array& array, int64_t i) {
  const auto [begin, end] = array.range(i);
  std::vector<Array>& entry = array.children().front().children();
  JsonValue::Object members;
  for (int64_t k = begin; k < end && spend(0); ++k) {
    const JsonValue key = value(entry.front(), k);
    JsonValue member = value(entry.back(), k);
    if (!problem_.empty()) break;
    if (key.string() == nullptr) damaged("a map has a key that is null");
    if (!member.is_null() || *key.string() == "content") members.push_back({*key.string(), std::move(member)});
  }
  return JsonValue(std::move(members));
}

}  // namespace snug::arrow
