// Fuzz target: logs. Whatever comes in, in whatever pieces, the reader keeps its bounds, its figures are no impossible ones,
// and tracebacks, stages and memory summaries of the same text can be read.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/utf8.h"
#include "torch/memory_summary.h"
#include "torch/oom_log.h"
#include "torch/stage.h"
#include "torch/traceback.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void check_size(const std::optional<int64_t>& bytes) { check(!bytes || (*bytes >= 0 && *bytes <= int64_t{1} << 50)); }

void check_message(const snug::OomMessage& m) {
  for (const auto& bytes : {m.capacity_bytes, m.free_bytes, m.allocated_bytes, m.reserved_bytes, m.unallocated_bytes,
                            m.allowed_bytes, m.private_pool_bytes, m.process_bytes, m.other_bytes})
    check_size(bytes);
  check(!m.tried_bytes || *m.tried_bytes >= 0);
  for (const snug::OomProcess& process : m.processes) check_size(process.bytes);
  check(m.line >= 1 && m.text.size() <= 16384 && (!m.device || *m.device >= 0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t piece = size_t{data[0]} + 1;
  snug::OomLogReader reader;
  for (size_t at = 0; at < text.size(); at += piece) reader.feed(std::string_view(text).substr(at, piece));
  const snug::OomLog log = reader.finish();
  check(log.first.has_value() == (log.count > 0) && log.messages.size() <= 256 && snug::is_utf8(log.head));
  for (const snug::OomMessage& message : log.messages) check_message(message);
  if (log.first) check(*log.first < log.messages.size() && log.at <= log.around.size());
  snug::read_memory_summary(log.head);
  snug::read_tracebacks(log.head);
  const auto tracebacks = snug::read_tracebacks(log.around);
  const snug::Traceback* found = snug::traceback_of(tracebacks, log.around, log.at);
  check(found == nullptr || found->frames.size() <= 512);
  snug::stage_of(found, std::string_view(log.around).substr(0, log.at));
  return 0;
}
