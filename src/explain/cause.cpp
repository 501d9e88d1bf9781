#include "explain/cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "explain/cause_without_figures.h"
#include "explain/size_text.h"

namespace snug {

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kContext = kGiB;  // at most, of a CUDA context with the usual libraries
// Figures have two decimals; sums of them may be off by this part.
constexpr double kRounding = 0.005;

bool at_least(int64_t a, int64_t b) { return static_cast<double>(a) >= static_cast<double>(b) * (1 - kRounding); }

double share(int64_t part, int64_t whole) { return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0; }

int percent(int64_t part, int64_t whole) { return static_cast<int>(std::lround(100 * share(part, whole))); }

// The message's figures and what follows from them.
struct Figures {
  int64_t tried, limit, allocated, unused, held;  // limit: what the device has, or less if less is allowed
  std::optional<int64_t> capacity, free, outside, others;
  bool tells_unused = false;
  bool listed = false;  // `others` is told by the message, not only what remains
};

std::optional<int64_t> unused_of(const OomMessage& m) {
  if (m.unallocated_bytes) return m.unallocated_bytes;
  if (m.reserved_bytes && m.allocated_bytes) return std::max<int64_t>(*m.reserved_bytes - *m.allocated_bytes, 0);
  return std::nullopt;
}

// What this process has in all, where it can be: some drivers tell 0.
std::optional<int64_t> process_of(const OomMessage& m, int64_t held) {
  return m.process_bytes && at_least(*m.process_bytes, held) ? m.process_bytes : std::nullopt;
}

// In a container the process finds itself among the others: the one that has a little more than PyTorch holds.
std::optional<int64_t> own_pid_of(const OomMessage& m, int64_t held) {
  if (process_of(m, held)) return std::nullopt;
  const OomProcess* own = nullptr;
  int64_t listed = 0;
  for (const OomProcess& process : m.processes) {
    listed += process.bytes.value_or(0);
    if (!process.bytes || !at_least(*process.bytes, held)) continue;
    if (own == nullptr || *process.bytes < *own->bytes) own = &process;
  }
  // It is there if it has little beside PyTorch's, or if the device could not hold it beside those that are listed.
  const bool beside = m.capacity_bytes && static_cast<double>(listed + held) > 1.02 * static_cast<double>(*m.capacity_bytes);
  return own != nullptr && (beside || *own->bytes <= held + 3 * kGiB) ? std::optional(own->pid) : std::nullopt;
}

void find_others(Figures& f, const OomMessage& m, const Diagnosis& d) {
  if (m.capacity_bytes && m.free_bytes) f.outside = std::max<int64_t>(*m.capacity_bytes - *m.free_bytes - f.held, 0);
  int64_t listed = 0;
  for (const OomProcess& process : m.processes) {
    if (d.own_pid == process.pid) continue;
    f.listed = f.listed || process.bytes.value_or(0) > 0;  // some drivers tell 0 of each
    listed += process.bytes.value_or(0);
  }
  if (f.listed) {
    f.others = listed;
  } else if (const auto own = process_of(m, f.held); own && m.capacity_bytes && m.free_bytes) {
    f.others = std::max<int64_t>(*m.capacity_bytes - *m.free_bytes - *own, 0);
    f.listed = true;
  } else if (d.own_pid) {
    f.others = 0;
  } else if (f.outside) {
    f.others = std::max<int64_t>(*f.outside - kContext, 0);
  }
}

std::string device_name(const OomMessage& m) {
  const std::string_view kind = m.source == OomSource::torch_hip   ? "GPU (ROCm)"
                                : m.source == OomSource::torch_xpu ? "XPU"
                                : m.source == OomSource::torch_mps ? "the Apple GPU"
                                                                   : "GPU";
  return m.device ? fmt::format("{} {}", kind, *m.device) : std::string(m.source == OomSource::torch_mps ? kind : "the GPU");
}

void show_sums(Diagnosis& d, const Figures& f) {
  d.arithmetic.push_back(fmt::format("asked for {}; free {}; PyTorch holds {}", size_text(f.tried),
                                     f.free ? size_text(*f.free) : "unknown", size_text(f.held)));
  if (f.tells_unused)
    d.arithmetic.push_back(fmt::format("PyTorch's {} = {} in tensors + {} unused", size_text(f.held), size_text(f.allocated),
                                       size_text(f.unused)));
  if (f.capacity && f.free && f.outside)
    d.arithmetic.push_back(fmt::format("{} in all - {} free - {} PyTorch = {} elsewhere", size_text(*f.capacity),
                                       size_text(*f.free), size_text(f.held), size_text(*f.outside)));
}

// Tried is the size of a segment; what the tensor had follows from the allocator's rules.
void tell_segment(Diagnosis& d, const OomMessage& m) {
  if ((m.source != OomSource::torch_cuda && m.source != OomSource::torch_hip) || !m.tried_bytes) return;
  const int64_t tried = *m.tried_bytes;
  if (tried == 2 * kMiB) d.remarks.emplace_back("2.00 MiB is a whole segment: the tensor had 1 MiB or less");
  if (tried == 20 * kMiB) d.remarks.emplace_back("20.00 MiB is a whole segment: the tensor had between 1 and 10 MiB");
  if (tried == 2 * kMiB || tried == 20 * kMiB)
    d.remarks.emplace_back("the last of many small tensors failed: it is not the one to look for");
}

// Some Intel GPUs have a limit of one block's size.
bool explain_block_limit(Diagnosis& d, const Figures& f, const OomMessage& m) {
  if (!m.allowed_bytes || m.text.find("memory block with size larger") == std::string::npos) return false;
  d.cause = Cause::memory_limit;
  d.answer = fmt::format("{} allows no block above {}: one tensor of {} was asked for", device_name(m),
                         size_text(*m.allowed_bytes), size_text(f.tried));
  d.arithmetic.push_back(fmt::format("asked for {} > {} in one block; PyTorch holds {}", size_text(f.tried),
                                     size_text(*m.allowed_bytes), size_text(f.held)));
  return true;
}

bool explain_limits(Diagnosis& d, const Figures& f, const OomMessage& m) {
  if (explain_block_limit(d, f, m)) return true;
  const std::string device = device_name(m);
  const int64_t most = f.capacity.value_or(f.limit);
  if (f.tried > most) {
    d.cause = Cause::impossible_request;
    d.answer = fmt::format("one tensor of {} was asked for on a device of {}: impossible, whatever is free",
                           size_text(f.tried), size_text(f.limit));
    d.arithmetic.push_back(fmt::format("asked for {} > {} {}", size_text(f.tried), size_text(f.limit),
                                       m.allowed_bytes ? "allowed" : "that the device has"));
    tell_shape(d, f.tried);
    return true;
  }
  if (f.capacity && static_cast<double>(f.held) > static_cast<double>(*f.capacity) * (1 + kRounding)) {
    d.cause = Cause::overcommit;
    d.answer = fmt::format("{} was over-committed: {} are allocated on a device of {}", device, size_text(f.held),
                           size_text(*f.capacity));
    d.arithmetic.push_back(fmt::format("PyTorch holds {} ({} in tensors) > {} that the device has", size_text(f.held),
                                       size_text(f.allocated), size_text(*f.capacity)));
    d.arithmetic.push_back(
        fmt::format("at least {} lie in host memory, which the driver lends on Windows", size_text(f.held - *f.capacity)));
    return true;
  }
  return false;
}

// Enough to have brought it about: over 0.5 GiB and a twentieth of the device, more than the desktop beside a small card's
// program, and without it there would be room.
bool others_suffice(const Figures& f) {
  if (!f.free || !f.others || !f.capacity) return false;
  // What is only left over in the sum may be buffers for other GPUs, which large cards have beside them.
  const auto enough =
      static_cast<int64_t>((f.listed || *f.capacity < 64 * kGiB ? 0.05 : 0.08) * static_cast<double>(*f.capacity));
  if (*f.others < kGiB && *f.others < f.held / 4) return false;
  return *f.others >= std::max<int64_t>(512 * kMiB, enough) && at_least(*f.free + *f.others, f.tried);
}

// Where others hold more than this process, or what it has unused is the usual slack, they are the cause, and pieces are
// not.
bool others_prevail(const Figures& f) {
  return others_suffice(f) && (*f.others > f.held || *f.others > 3 * f.unused || share(f.unused, f.limit) < 0.01);
}

// A new segment would have been made, had the driver granted it: pieces are not the cause.
bool is_far_from_full(const Figures& f) {
  return f.free && f.capacity && share(*f.free, *f.capacity) > 0.2 && *f.free > 8 * f.tried;
}

bool explain_fragmentation(Diagnosis& d, const Figures& f, const OomMessage& m) {
  if (f.unused == 0 || !at_least(f.unused, f.tried)) return false;
  if (others_prevail(f) || is_far_from_full(f)) return false;
  // A device that fills up has so much in holes, whatever filled it: then holes may be the cause, and are less likely.
  constexpr double kUsualHoles = 0.1, kSlack = 0.01;
  const bool few = share(f.unused, f.held) < 3 * kUsualHoles && f.unused < 2 * f.tried;
  if (few || share(f.unused, f.held) < kUsualHoles) {
    if (share(f.unused, f.limit) >= kSlack) d.or_cause = Cause::fragmentation;
    return false;
  }
  d.cause = Cause::fragmentation;
  if (share(f.unused, f.held) < 4 * kUsualHoles) d.or_cause = Cause::shortage;
  d.answer = fmt::format("{} is fragmented: {} are reserved and unused, in pieces smaller than the {} asked for",
                         device_name(m), size_text(f.unused), size_text(f.tried));
  show_sums(d, f);
  d.arithmetic.push_back(
      fmt::format("unused {} >= asked {}: enough, but in pieces", size_text(f.unused), size_text(f.tried)));
  if (others_suffice(f))
    d.remarks.push_back(fmt::format("{} lie outside of this PyTorch, more than its context needs: see `nvidia-smi`",
                                    size_text(f.outside.value_or(*f.others))));
  if (d.nearly_full)
    d.remarks.push_back(fmt::format("tensors alone fill {} % of the device: curing this wins {} at most, so free memory too",
                                    percent(f.allocated, f.limit), size_text(f.unused)));
  return true;
}

bool explain_set_limit(Diagnosis& d, const Figures& f, const OomMessage& m) {
  if (!m.allowed_bytes || (f.capacity && at_least(*m.allowed_bytes, *f.capacity))) return false;
  const int64_t held = f.held + m.other_bytes.value_or(0);
  if (f.free ? *f.free < f.tried : !at_least(held + f.tried, *m.allowed_bytes)) return false;
  d.cause = Cause::memory_limit;
  d.answer =
      m.source == OomSource::torch_mps
          ? fmt::format("PyTorch's limit for the Apple GPU is reached: {} of unified memory", size_text(*m.allowed_bytes))
          : fmt::format("a limit that was set is reached: this process may take {} of {}", size_text(*m.allowed_bytes),
                        f.capacity ? size_text(*f.capacity) : "the device");
  if (m.other_bytes) {
    d.arithmetic.push_back(fmt::format("{} PyTorch + {} other + {} asked = {}", size_text(f.held), size_text(*m.other_bytes),
                                       size_text(f.tried), size_text(held + f.tried)));
  } else {
    d.arithmetic.push_back(
        fmt::format("{} held + {} asked = {}", size_text(held), size_text(f.tried), size_text(held + f.tried)));
  }
  d.arithmetic.push_back(fmt::format("allowed {}; free on the device: {}", size_text(*m.allowed_bytes),
                                     f.free ? size_text(*f.free) : "not told"));
  return true;
}

bool is_huge(const Figures& f) {
  const int64_t most = f.capacity.value_or(f.limit);
  return share(f.tried, most) > 0.5 && share(f.held, most) < 0.25;
}

void explain_huge(Diagnosis& d, const Figures& f, const OomMessage& m) {
  d.cause = Cause::impossible_request;
  d.answer = fmt::format("one tensor of {} was asked for: {} % of {}, with {} in use by PyTorch", size_text(f.tried),
                         percent(f.tried, f.capacity.value_or(f.limit)), device_name(m), size_text(f.held));
  show_sums(d, f);
  tell_shape(d, f.tried);
}

// Intel's Level Zero grants no block above 4 GiB unless it is told to.
bool explain_intel_block(Diagnosis& d, const Figures& f, const OomMessage& m) {
  if (m.source != OomSource::torch_xpu || f.tried < 4 * kGiB || f.tried > f.limit * 9 / 10) return false;
  if (!f.free && share(f.held, f.limit) > 0.1) return false;
  d.cause = Cause::memory_limit;
  d.or_cause = Cause::driver;
  d.answer = fmt::format("{} was refused {} in one block although {}: Intel's limit of 4.00 GiB a block, most likely",
                         device_name(m), size_text(f.tried),
                         f.free ? size_text(*f.free) + " were free" : "PyTorch holds " + size_text(f.held));
  show_sums(d, f);
  return true;
}

// Well over what was asked for has to be free: the driver itself takes some of it, and rounds up.
bool explain_refusal(Diagnosis& d, const Figures& f, const OomMessage& m) {
  if (explain_intel_block(d, f, m)) return true;
  const auto margin = static_cast<int64_t>(0.005 * static_cast<double>(f.capacity.value_or(0)));
  if (!f.free || *f.free - f.tried < std::max<int64_t>(32 * kMiB, margin)) return false;
  if (is_huge(f)) {
    explain_huge(d, f, m);
    return true;
  }
  // Newer releases count the whole process: a large part of the device that nobody has is withheld by a limit, most likely.
  const bool withheld = m.process_bytes && share(*f.free, f.capacity.value_or(f.limit)) > 0.1 && *f.free > 8 * f.tried;
  if (withheld) {
    d.cause = Cause::memory_limit;
    d.or_cause = Cause::driver;
    d.answer = fmt::format("{} was refused {} although {} were free: a limit below what it has", device_name(m),
                           size_text(f.tried), size_text(*f.free));
    show_sums(d, f);
    d.remarks.emplace_back("PYTORCH_ALLOC_CONF=per_process_memory_fraction and set_per_process_memory_fraction set one");
    return true;
  }
  d.cause = Cause::driver;
  d.answer = fmt::format("the driver refused {} although {} were free on {}", size_text(f.tried), size_text(*f.free),
                         device_name(m));
  show_sums(d, f);
  d.arithmetic.push_back(
      fmt::format("free {} >= asked {}: not a lack of device memory", size_text(*f.free), size_text(f.tried)));
  d.remarks.emplace_back("on Windows the page file backs device memory; or another process let go in between");
  return true;
}

// The asynchronous allocator does not tell what its pool holds and does not use.
bool explain_untold_pool(Diagnosis& d, const Figures& f, const OomMessage& m) {
  if (m.source != OomSource::torch_async || !f.outside) return false;
  d.answer =
      fmt::format("{} more did not fit on {}; whether others or cudaMallocAsync's pool hold the rest, it does not tell",
                  size_text(f.tried), device_name(m));
  d.arithmetic.push_back(fmt::format("{} in all - {} free - {} in tensors = {} in the pool or elsewhere",
                                     size_text(*f.capacity), size_text(*f.free), size_text(f.allocated),
                                     size_text(*f.outside)));
  d.remarks.emplace_back("missing: what other processes hold; `nvidia-smi` tells");
  d.outside_bytes.reset();
  d.others_bytes.reset();
  return true;
}

bool explain_others(Diagnosis& d, const Figures& f, const OomMessage& m) {
  if (!others_suffice(f)) return false;
  if (explain_untold_pool(d, f, m)) return true;
  d.cause = Cause::other_process;
  d.answer = f.listed ? fmt::format("other processes hold {} of {}", size_text(*f.others), device_name(m))
                      : fmt::format("something outside this PyTorch holds {} of {}", size_text(*f.outside), device_name(m));
  show_sums(d, f);
  for (const OomProcess& process : m.processes)
    if (process.bytes && process.pid != d.own_pid && d.arithmetic.size() < 10)
      d.arithmetic.push_back(fmt::format("process {} has {}", process.pid, size_text(*process.bytes)));
  if (!f.listed)
    d.remarks.emplace_back("a CUDA context takes 0.3 to 1 GiB of that; the rest is other processes or libraries");
  d.arithmetic.push_back(
      fmt::format("without them {} would be free, of {} asked for", size_text(*f.free + *f.others), size_text(f.tried)));
  if (f.unused > 0 && at_least(f.unused, f.tried))
    d.remarks.push_back(
        fmt::format("{} are reserved and unused, in pieces: to cure that wins no more than this", size_text(f.unused)));
  return true;
}

// The message does not tell what is free, and what PyTorch holds leaves room: others, or a limit of the driver.
bool explain_untold(Diagnosis& d, const Figures& f, const OomMessage& m) {
  const auto room = static_cast<double>(f.limit) * 0.9;
  if (f.free || is_huge(f) || static_cast<double>(f.held) + static_cast<double>(f.tried) > room) return false;
  d.answer = fmt::format("{} were refused on {} although PyTorch holds {} of {}; why, the text does not tell",
                         size_text(f.tried), device_name(m), size_text(f.held), size_text(f.limit));
  d.remarks.emplace_back("missing: what is free on the device; others may hold it, or the driver limits one tensor's size");
  return true;
}

void explain_shortage(Diagnosis& d, const Figures& f, const OomMessage& m) {
  if (is_huge(f)) {
    explain_huge(d, f, m);
    return;
  }
  d.cause = Cause::shortage;
  const bool large = share(f.tried, f.limit) > 0.4;
  if (f.free && share(*f.free, f.limit) > 0.1) {
    d.answer =
        fmt::format("{}{} did not fit on {}: {} were free, and tensors fill {} of {}", large ? "one request of " : "",
                    size_text(f.tried), device_name(m), size_text(*f.free), size_text(f.allocated), size_text(f.limit));
  } else {
    d.answer = fmt::format("{} is full: tensors fill {} of {}, and {} more did not fit", device_name(m),
                           size_text(f.allocated), size_text(f.limit), size_text(f.tried));
  }
  show_sums(d, f);
  if (large) tell_shape(d, f.tried);
  if (d.missing_bytes && *d.missing_bytes > 0)
    d.arithmetic.push_back(fmt::format("at least {} more must come free", size_text(*d.missing_bytes)));
  if (f.unused == 0 || !at_least(f.unused, f.tried)) return;
  d.remarks.push_back(d.or_cause
                          ? fmt::format("{} lie unused in holes, {:.1f} % of what PyTorch holds: a device that fills up has "
                                        "as much, so holes are the less likely cause; a memory snapshot decides",
                                        size_text(f.unused), 100 * share(f.unused, f.held))
                          : fmt::format("the unused {} are {:.1f} % of the device: slack, not worth an allocator setting",
                                        size_text(f.unused), 100 * share(f.unused, f.limit)));
}

// A sentence cut short before it tells what is reserved and unused: sure only if the tensors alone leave no room.
bool explain_cut(Diagnosis& d, const Figures& f, const OomMessage& m) {
  const bool tells = m.source == OomSource::torch_async || m.source == OomSource::torch_mps || f.tells_unused;
  if (tells || f.allocated + f.tried > f.limit) return false;
  // What this process has in all bounds what can be unused in it.
  std::optional<int64_t> own = m.process_bytes;
  for (const OomProcess& process : m.processes)
    if (d.own_pid == process.pid) own = process.bytes;
  if (own && *own - f.allocated < f.tried) return false;
  d.answer = fmt::format("{} more did not fit on {}; the sentence is cut short, so that the cause stays open",
                         size_text(f.tried), device_name(m));
  d.arithmetic.push_back(fmt::format("asked for {}; free {}; {} in tensors", size_text(f.tried),
                                     f.free ? size_text(*f.free) : "unknown", size_text(f.allocated)));
  d.remarks.emplace_back("missing: how much is \"reserved by PyTorch but unallocated\"");
  d.outside_bytes.reset();
  d.others_bytes.reset();
  return true;
}

void explain_figures(Diagnosis& d, const OomMessage& m) {
  Figures f{};
  f.tried = *m.tried_bytes;
  f.capacity = m.capacity_bytes;
  f.limit = std::min(m.capacity_bytes.value_or(INT64_MAX), m.allowed_bytes.value_or(INT64_MAX));
  f.allocated = *m.allocated_bytes;
  f.unused = unused_of(m).value_or(0);
  f.tells_unused = unused_of(m).has_value();
  f.held = f.allocated + f.unused;
  f.free = m.free_bytes;
  d.own_pid = own_pid_of(m, f.held);
  find_others(f, m, d);
  d.unused_bytes = unused_of(m);
  d.outside_bytes = f.outside;
  d.others_bytes = f.others;
  d.nearly_full = share(f.allocated, f.limit) > 0.9;
  if (f.free) d.missing_bytes = std::max<int64_t>(f.tried - *f.free, 0);
  if (explain_limits(d, f, m) || explain_cut(d, f, m) || explain_fragmentation(d, f, m) || explain_set_limit(d, f, m) ||
      explain_refusal(d, f, m) || explain_others(d, f, m) || explain_untold(d, f, m))
    return;
  explain_shortage(d, f, m);
}

}  // namespace

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::unknown: return "unknown";
    case Cause::shortage: return "shortage";
    case Cause::fragmentation: return "fragmentation";
    case Cause::other_process: return "other_process";
    case Cause::impossible_request: return "impossible_request";
    case Cause::memory_limit: return "memory_limit";
    case Cause::overcommit: return "overcommit";
    case Cause::host_memory: return "host_memory";
    case Cause::driver: return "driver";
  }
  return "unknown";
}

Diagnosis diagnose(const OomMessage& m) {
  Diagnosis d;
  if (is_host(m.source)) {
    explain_host(d, m);
  } else if (m.has_figures()) {
    explain_figures(d, m);
  } else {
    explain_without_figures(d, m);
  }
  if (d.or_cause == d.cause || (d.cause == Cause::memory_limit && d.or_cause != Cause::driver)) d.or_cause.reset();
  if (d.cause != Cause::shortage && d.cause != Cause::memory_limit && d.cause != Cause::fragmentation) d.or_cause.reset();
  tell_segment(d, m);
  for (const std::string& name : m.impossible) {
    if (name == "allowed") continue;  // cudaMallocAsync's, where no limit was set
    d.remarks.push_back(fmt::format("the figure for \"{}\" cannot be true (Windows hides it) and was left out", name));
  }
  return d;
}

Diagnosis diagnose(const OomLog& log) {
  Diagnosis d = diagnose(log.cause());
  std::map<int, std::set<int>> ranks_of;
  for (const OomMessage& message : log.messages)
    if (message.rank && message.device) ranks_of[*message.device].insert(*message.rank);
  for (const auto& [device, ranks] : ranks_of)
    if (ranks.size() > 1)
      d.remarks.push_back(fmt::format("{} ranks ran out on the one GPU {}: each needs its own", ranks.size(), device));
  return d;
}

}  // namespace snug
