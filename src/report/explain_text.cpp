#include <fmt/format.h>

#include "explain/size_text.h"
#include "report/explain_parts.h"
#include "report/explain_report.h"
#include "report/units.h"
#include "torch/words.h"

namespace snug {

namespace {}  // namespace

std::string paragraph(const std::string& text, int indent) {
  return std::string(static_cast<size_t>(indent), ' ') + wrapped(text, kExplainColumns, indent) + "\n";
}

std::string fact(std::string_view label, const std::string& text) {
  return fmt::format("  {:<11} {}\n", label, wrapped(text, kExplainColumns, 14));
}

std::string lines_of(std::string_view title, const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  std::string text = fmt::format("\n{}\n", title);
  for (const std::string& line : lines) text += paragraph(line, 2);
  return text;
}

std::string place_text(const Frame& frame) {
  std::string text = frame.line > 0 ? fmt::format("{}:{}", frame.file, frame.line) : frame.file;
  if (!frame.function.empty()) text += fmt::format(" in {}", frame.function);
  if (!frame.code.empty()) text += fmt::format(": {}", shortened(frame.code, 160));
  return text;
}

std::string stage_text(const StageFound& stage, std::string_view why_unknown) {
  if (stage.stage == TorchStage::unknown) return fmt::format("unknown: {}", why_unknown);
  return fmt::format("{}{}, told by {}", name_of(stage.stage),
                     stage.recompute ? " (a forward that checkpointing repeats)" : "", stage.by);
}

std::string advice_text(const std::vector<Advice>& all) {
  std::string text = all.empty() ? "" : "\nwhat to change, smallest first\n";
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string gives = all[i].most_bytes ? fmt::format(" [up to {}]", size_text(*all[i].most_bytes)) : std::string();
    text += fmt::format("{:>3}. {}\n", i + 1, wrapped(all[i].change + gives, kExplainColumns, 5));
    if (!all[i].effect.empty()) text += paragraph(all[i].effect, 5);
  }
  return text;
}

namespace {

std::string or_text(const Diagnosis& d) { return d.or_cause ? fmt::format(", or {}", name_of(*d.or_cause)) : std::string(); }

std::string message_text(const Explanation& e) {
  const OomMessage& m = e.log.cause();
  std::string text = fmt::format("line {}, of {}", m.line, name_of(m.source));
  if (!m.era.empty()) text += fmt::format(", the wording of PyTorch {}", m.era);
  if (m.rank) text += fmt::format(", rank {}", *m.rank);
  return text;
}

std::string others_text(const Explanation& e) {
  std::string text = fmt::format("{} more", counted(e.log.count - 1, "message"));
  const std::vector<int> ranks = e.log.ranks();
  for (size_t i = 0; i < ranks.size() && i < 16; ++i) text += fmt::format("{} {}", i == 0 ? "; ranks" : ",", ranks[i]);
  return text + (ranks.size() > 16 ? ", …" : "");
}

std::string device_text(const TracedDevice& device) {
  if (device.type == 0) return "the CPU";
  return fmt::format("{} {}", device.type == 1 ? "CUDA" : fmt::format("device type {}", device.type), device.index);
}

}  // namespace

std::string explain_text(const Explanation& e) {
  std::string text = wrapped(e.diagnosis.answer, kExplainColumns, 0) + "\n";
  text += fmt::format("cause: {}{}\n", name_of(e.diagnosis.cause), or_text(e.diagnosis));
  text += lines_of("the arithmetic", e.diagnosis.arithmetic);
  text += "\nwhere\n" + fact("stage", stage_text(e.stage, "the text shows no frames that tell"));
  if (e.own) {
    text += fact("your line", place_text(*e.own));
  } else if (e.caller) {
    text += fact("called by", place_text(*e.caller));
  }
  text += fact("message", message_text(e));
  if (e.log.count > 1) text += fact("and", others_text(e));
  text += lines_of("to note", e.diagnosis.remarks);
  if (e.summary) {
    const Diagnosis summary = diagnose(*e.summary);
    std::vector<std::string> lines = {summary.answer};
    lines.insert(lines.end(), summary.arithmetic.begin(), summary.arithmetic.end());
    lines.insert(lines.end(), summary.remarks.begin(), summary.remarks.end());
    text += lines_of("the memory summary beside it", lines);
  }
  return text + advice_text(e.advice);
}

std::string explain_text(const MemorySummary& summary) {
  const Diagnosis d = diagnose(summary);
  return wrapped(d.answer, kExplainColumns, 0) + "\n" + lines_of("the arithmetic", d.arithmetic) +
         lines_of("to note", d.remarks);
}

std::string explain_text(const ProfilerTrace& trace) {
  std::string text;
  for (const TracedDevice& device : trace.devices) {
    text += fmt::format("{}: peak {} in tensors after {:.3f} s\n", device_text(device),
                        size_text(device.peak_allocated_bytes), device.peak_microseconds / 1e6);
    if (device.type != 0) text += paragraph(fmt::format("{} reserved at most", size_text(device.peak_reserved_bytes)), 2);
    text += paragraph(fmt::format("largest allocation {}; {} at the end; {}", size_text(device.largest_bytes),
                                  size_text(device.last_allocated_bytes), counted(device.events, "event")),
                      2);
  }
  if (!trace.whole) text += "the trace is cut off: its end is missing\n";
  if (trace.passed_over > 0)
    text += fmt::format("{} passed over: no JSON, or too long\n", counted(trace.passed_over, "event"));
  return text;
}

}  // namespace snug
