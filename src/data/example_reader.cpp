#include "data/example_reader.h"

#include "base/error.h"

namespace snug {
namespace {

std::vector<std::string> columns_of(const JsonValue& fields) {
  std::vector<std::string> names;
  for (const JsonMember& member : *fields.object())
    if (!member.value.is_null()) names.push_back(member.name);
  return names;
}

}  // namespace

ExampleReader::ExampleReader(const DatasetRequest& request)
    : files_(find_data_files(request.data)), interpreter_(request.columns) {}

void ExampleReader::open(const std::filesystem::path& file) {
  source_ = open_row_source(file);
  if (const auto columns = source_->columns()) settle(*columns, file.string());
  if (format()) source_->select(interpreter_.required(), interpreter_.optional());
}

void ExampleReader::settle(const std::vector<std::string>& columns, const std::string& where) {
  if (format()) return;
  try {
    interpreter_.settle(columns);
  } catch (const Error& error) {
    throw Error(error.problem(), where, error.mend());
  }
}

bool ExampleReader::advance() {
  while (!source_ || !source_->next(row_)) {
    if (next_file_ == files_.size()) return false;
    open(files_[next_file_++]);
  }
  if (row_.problem.empty() && !format()) {
    settle(columns_of(row_.fields), source_->where());
    source_->select(interpreter_.required(), interpreter_.optional());
  }
  return true;
}

Example ExampleReader::take() {
  if (!row_.problem.empty()) throw Error(row_.problem, {}, row_.mend);
  return interpreter_.interpret(std::move(row_.fields));
}

}  // namespace snug
