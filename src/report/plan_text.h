#pragma once
// A plan as one screen for people: the answer first, then where the bytes go, then what was assumed.

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "advise/alternatives.h"
#include "advise/levers.h"
#include "advise/workload.h"
#include "plan/plan.h"
#include "report/pytorch_report.h"
#include "report/text_style.h"

namespace snug {

// "fits: 1.21 of 22.9 GiB, peak in backward".
std::string plan_verdict(const Plan& plan);
// A line for each engine that was asked, the one that decides first.
std::vector<std::string> verdict_lines(const Plan& plan, const std::optional<PyTorchAnswer>& pytorch);
// `keys_set`: recipe keys the user gave; the others that matter are listed as assumed. PyTorch's answer, if there is one,
// comes first, because who asks for a card or with another trainer's recipe runs that.
std::string plan_text(const Plan& plan, const std::vector<std::string>& keys_set, const std::optional<CountedData>& data,
                      const TextStyle& style, const std::optional<PyTorchAnswer>& pytorch = std::nullopt);
// Each single change: bytes saved, time, what it gives up. `whose`: the plans that they are differences of.
std::string levers_text(std::span<const Lever> levers, const TextStyle& style, std::string_view whose = "snug's plan");
// "--per-device-train-batch-size 1".
std::string flag_of(const Setting& setting);
// The same with long lists cut in the middle, for tables.
std::string short_flag_of(const Setting& setting);
// What each kind of value is kept or computed in, by name.
std::vector<std::pair<const char*, DType>> precisions(const Plan& plan);
// What lies away from the device when most does, by name, and where: "on disk".
std::vector<std::pair<const char*, int64_t>> away_parts(const Plan& plan);
const char* away_home(const Plan& plan);
// What to change when it does not fit, one line.
std::string change_text(const Plan& plan);

}  // namespace snug
