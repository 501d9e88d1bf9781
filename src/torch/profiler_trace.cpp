#include "torch/profiler_trace.h"

#include <simdjson.h>

#include <algorithm>

#include "torch/words.h"

namespace snug {

namespace {

constexpr size_t kLongestEvent = size_t{1} << 20;
constexpr size_t kMostDevices = 64;
constexpr int64_t kMostTraceBytes = int64_t{1} << 60;
constexpr double kMostMicroseconds = 1e18;

struct MemoryEvent {
  int64_t bytes = 0, allocated = -1, reserved = 0, type = 0, index = -1;
  double microseconds = 0;
};

int64_t bounded(simdjson::ondemand::value& value) {
  int64_t number = 0;
  return value.get_int64().get(number) == simdjson::SUCCESS && number > -kMostTraceBytes && number < kMostTraceBytes ? number
                                                                                                                     : 0;
}

void read_arguments(simdjson::ondemand::object arguments, MemoryEvent& event) {
  for (auto field : arguments) {
    std::string_view key;
    simdjson::ondemand::value value;
    if (field.unescaped_key().get(key) || field.value().get(value)) return;
    if (key == "Bytes") event.bytes = bounded(value);
    if (key == "Total Allocated") event.allocated = bounded(value);
    if (key == "Total Reserved") event.reserved = bounded(value);
    if (key == "Device Type") event.type = bounded(value);
    if (key == "Device Id") event.index = bounded(value);
  }
}

}  // namespace

struct ProfilerTraceReader::Parser {
  simdjson::ondemand::parser parser;

  // False if the event is no JSON or not one of memory.
  bool read(const std::string& text, MemoryEvent& event) {
    const simdjson::padded_string padded(text);
    simdjson::ondemand::document document;
    simdjson::ondemand::object object;
    if (parser.iterate(padded).get(document) || document.get_object().get(object)) return false;
    bool memory = false;
    for (auto field : object) {
      std::string_view key;
      simdjson::ondemand::value value;
      if (field.unescaped_key().get(key) || field.value().get(value)) return false;
      std::string_view name;
      simdjson::ondemand::object arguments;
      double time = 0;
      if (key == "name") memory = value.get_string().get(name) == simdjson::SUCCESS && name == "[memory]";
      if (key == "ts" && value.get_double().get(time) == simdjson::SUCCESS && std::abs(time) < kMostMicroseconds)
        event.microseconds = time;
      if (key == "args" && value.get_object().get(arguments) == simdjson::SUCCESS) read_arguments(arguments, event);
    }
    return memory && event.allocated >= 0;
  }
};

ProfilerTraceReader::ProfilerTraceReader() : parser_(std::make_unique<Parser>()) {}
ProfilerTraceReader::~ProfilerTraceReader() = default;

void ProfilerTraceReader::feed(std::string_view bytes) {
  for (const char c : bytes) {
    const bool inside = events_depth_ >= 0 && depth_ > events_depth_;
    if (inside && !too_long_) {
      event_ += c;
      too_long_ = event_.size() > kLongestEvent;
    }
    if (in_string_) {
      if (!escaped_ && c == '"') in_string_ = false;
      if (in_string_ && !inside && key_.size() < 16) key_ += c;
      escaped_ = !escaped_ && c == '\\';
      continue;
    }
    if (c == '"') {
      in_string_ = true;
      if (!inside) key_.clear();
    } else if (c == '{' || c == '[') {
      if (events_depth_ < 0 && c == '[' && (depth_ == 0 || (depth_ == 1 && key_ == "traceEvents"))) {
        events_depth_ = ++depth_;
        continue;
      }
      if (events_depth_ >= 0 && depth_ == events_depth_) {
        event_.assign(1, c);
        too_long_ = false;
      }
      ++depth_;
    } else if (c == '}' || c == ']') {
      --depth_;
      if (events_depth_ >= 0 && depth_ == events_depth_) take_event();
      if (events_depth_ >= 0 && depth_ < events_depth_) {
        trace_.whole = true;
        events_depth_ = -1;
        key_.clear();
      }
      depth_ = std::max(depth_, 0);
    }
  }
}

void ProfilerTraceReader::take_event() {
  ++trace_.events;
  if (too_long_) {
    ++trace_.passed_over;
  } else if (contains(event_, "[memory]")) {
    MemoryEvent event;
    if (!parser_->read(event_, event)) {
      ++trace_.passed_over;
      return;
    }
    if (first_microseconds_ < 0) first_microseconds_ = std::max(event.microseconds, 0.0);
    auto device = std::ranges::find_if(
        trace_.devices, [&](const TracedDevice& known) { return known.type == event.type && known.index == event.index; });
    if (device == trace_.devices.end()) {
      if (trace_.devices.size() >= kMostDevices || std::abs(event.type) > 4096 || std::abs(event.index) > 4096) {
        ++trace_.passed_over;
        return;
      }
      trace_.devices.push_back({static_cast<int>(event.type), static_cast<int>(event.index)});
      device = trace_.devices.end() - 1;
    }
    ++trace_.memory_events;
    ++device->events;
    device->last_allocated_bytes = event.allocated;
    device->largest_bytes = std::max(device->largest_bytes, event.bytes);
    device->peak_reserved_bytes = std::max(device->peak_reserved_bytes, event.reserved);
    if (event.allocated > device->peak_allocated_bytes) {
      device->peak_allocated_bytes = event.allocated;
      device->peak_microseconds = event.microseconds - first_microseconds_;
    }
  }
}

ProfilerTrace ProfilerTraceReader::finish() { return std::move(trace_); }

bool looks_like_trace(std::string_view head) {
  const size_t first = head.find_first_not_of(" \r\n\t");
  if (first == std::string_view::npos || (head[first] != '{' && head[first] != '[')) return false;
  return contains(head, "\"traceEvents\"") || contains(head, "\"schemaVersion\"") || contains(head, "\"ph\"");
}

}  // namespace snug
