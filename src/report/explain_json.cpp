#include <nlohmann/json.hpp>

#include "report/explain_parts.h"
#include "report/explain_report.h"
#include "report/json_value.h"

namespace snug {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const OomMessage& m) {
  Json processes = Json::array();
  for (const OomProcess& process : m.processes)
    processes.push_back({{"pid", process.pid}, {"bytes", or_null(process.bytes)}});
  return {{"source", name_of(m.source)},
          {"pytorch", m.era.empty() ? Json() : Json(m.era)},
          {"line", m.line},
          {"rank", or_null(m.rank)},
          {"device", or_null(m.device)},
          {"tried_bytes", or_null(m.tried_bytes)},
          {"capacity_bytes", or_null(m.capacity_bytes)},
          {"free_bytes", or_null(m.free_bytes)},
          {"allocated_bytes", or_null(m.allocated_bytes)},
          {"reserved_bytes", or_null(m.reserved_bytes)},
          {"unallocated_bytes", or_null(m.unallocated_bytes)},
          {"allowed_bytes", or_null(m.allowed_bytes)},
          {"private_pool_bytes", or_null(m.private_pool_bytes)},
          {"process_bytes", or_null(m.process_bytes)},
          {"other_bytes", or_null(m.other_bytes)},
          {"processes", processes},
          {"impossible", m.impossible},
          {"text", m.text}};
}

Json json_of(const Diagnosis& d) {
  return {{"unused_bytes", or_null(d.unused_bytes)}, {"outside_bytes", or_null(d.outside_bytes)},
          {"others_bytes", or_null(d.others_bytes)}, {"missing_bytes", or_null(d.missing_bytes)},
          {"own_pid", or_null(d.own_pid)},           {"nearly_full", d.nearly_full}};
}

Json json_of(const MemoryFigure& figure) {
  return {{"now_bytes", or_null(figure.now)}, {"peak_bytes", or_null(figure.peak)}};
}

Json json_of(const MemorySummary& s) {
  return {{"device", s.device >= 0 ? Json(s.device) : Json()},
          {"allocated", json_of(s.allocated)},
          {"active", json_of(s.active)},
          {"requested", json_of(s.requested)},
          {"reserved", json_of(s.reserved)},
          {"non_releasable", json_of(s.non_releasable)},
          {"retries", or_null(s.retries)},
          {"ooms", or_null(s.ooms)}};
}

}  // namespace

Json frame_json(const std::optional<Frame>& frame) {
  if (!frame) return {};
  return {{"file", frame->file},
          {"line", frame->line > 0 ? Json(frame->line) : Json()},
          {"function", frame->function},
          {"code", frame->code}};
}

Json advice_json(const std::vector<Advice>& all) {
  Json list = Json::array();
  for (const Advice& one : all)
    list.push_back({{"change", one.change},
                    {"effect", one.effect},
                    {"do", one.todo.empty() ? Json() : Json(one.todo)},
                    {"most_bytes", or_null(one.most_bytes)}});
  return list;
}

Json explain_json(const Explanation& e) {
  return {{"schema", 1},
          {"kind", "message"},
          {"answer", e.diagnosis.answer},
          {"cause", name_of(e.diagnosis.cause)},
          {"or_cause", e.diagnosis.or_cause ? Json(name_of(*e.diagnosis.or_cause)) : Json()},
          {"what", e.diagnosis.cause == Cause::shortage && e.filler != Filler::none ? Json(name_of(e.filler)) : Json()},
          {"stage", name_of(e.stage.stage)},
          {"stage_told_by", e.stage.by},
          {"recompute", e.stage.recompute},
          {"source", frame_json(e.own)},
          {"called_by", frame_json(e.caller)},
          {"arithmetic", e.diagnosis.arithmetic},
          {"figures", json_of(e.diagnosis)},
          {"remarks", e.diagnosis.remarks},
          {"message", json_of(e.log.cause())},
          {"messages", e.log.count},
          {"ranks", e.log.ranks()},
          {"memory_summary", e.summary ? json_of(*e.summary) : Json()},
          {"advice", advice_json(e.advice)}};
}

Json explain_json(const MemorySummary& summary) {
  const Diagnosis d = diagnose(summary);
  return {{"schema", 1},          {"kind", "memory_summary"},          {"answer", d.answer}, {"arithmetic", d.arithmetic},
          {"remarks", d.remarks}, {"memory_summary", json_of(summary)}};
}

Json explain_json(const ProfilerTrace& trace) {
  Json devices = Json::array();
  for (const TracedDevice& d : trace.devices)
    devices.push_back({{"type", d.type},
                       {"index", d.index},
                       {"events", d.events},
                       {"peak_allocated_bytes", d.peak_allocated_bytes},
                       {"peak_seconds", d.peak_microseconds / 1e6},
                       {"peak_reserved_bytes", d.peak_reserved_bytes},
                       {"largest_bytes", d.largest_bytes},
                       {"last_allocated_bytes", d.last_allocated_bytes}});
  return {{"schema", 1},
          {"kind", "profiler_trace"},
          {"devices", devices},
          {"events", trace.events},
          {"memory_events", trace.memory_events},
          {"passed_over", trace.passed_over},
          {"whole", trace.whole}};
}

}  // namespace snug
