#include "data/batch_encoder.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

namespace snug {
namespace {

constexpr size_t kMostRows = 256;
constexpr size_t kMostBytes = size_t{4} << 20;

size_t bytes_of_value(const JsonValue& value) {
  size_t bytes = sizeof(JsonValue);
  if (value.string() != nullptr) bytes += value.string()->size();
  if (value.list() != nullptr)
    for (const JsonValue& item : *value.list()) bytes += bytes_of_value(item);
  if (value.object() != nullptr)
    for (const JsonMember& member : *value.object()) bytes += member.name.size() + bytes_of_value(member.value);
  return bytes;
}

size_t bytes_of_example(const Example& example) {
  size_t bytes = example.prompt.size() + example.completion.size();
  if (example.text) bytes += example.text->size();
  if (example.chat) bytes += bytes_of_value(example.chat->messages) + bytes_of_value(example.chat->tools);
  return bytes;
}

void encode_one(ExampleEncoder& encoder, RowBatch::Item& item) {
  if (item.problem) return;
  try {
    encoder.encode(item.example, item.encoded);
  } catch (const Error& error) {
    item.problem = error;
  }
}

}  // namespace

RowBatch::Item& RowBatch::add(std::string where) {
  if (used_ == items_.size()) items_.emplace_back();
  Item& item = items_[used_++];
  item.where = std::move(where);
  item.problem.reset();
  item.example = {};
  return item;
}

bool RowBatch::is_full() {
  while (counted_ < used_) bytes_ += bytes_of_example(items_[counted_++].example);
  return used_ == kMostRows || bytes_ >= kMostBytes;
}

void RowBatch::clear() {
  // Space that one large row has taken is given back.
  for (size_t i = 0; i < used_; ++i) {
    items_[i].example = {};
    if (items_[i].encoded.tokens.capacity() > kMostBytes / sizeof(uint32_t) / kMostRows) items_[i].encoded = {};
  }
  used_ = counted_ = bytes_ = 0;
}

BatchEncoder::BatchEncoder(const DatasetRequest& request, const Tokenizer& tokenizer, const ChatRenderer& renderer) {
  for (int i = 0; i < std::max(1, request.threads); ++i) encoders_.emplace_back(request, tokenizer, renderer);
}

void BatchEncoder::encode(RowBatch& batch) {
  const std::span<RowBatch::Item> items = batch.items();
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> failures(encoders_.size());  // no memory, and the like
  const auto work = [&](size_t thread) {
    try {
      for (size_t i = next++; i < items.size(); i = next++) encode_one(encoders_[thread], items[i]);
    } catch (...) {
      failures[thread] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < encoders_.size() && i < items.size(); ++i) threads.emplace_back(work, i);
    work(0);
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace snug
