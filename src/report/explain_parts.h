#pragma once
// Pieces that the answers of `snug explain` share.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "explain/advice.h"
#include "explain/snapshot_explanation.h"
#include "torch/stage.h"
#include "torch/traceback.h"

namespace snug {

inline constexpr int kExplainColumns = 80;  // the width that lines are wrapped to

std::string paragraph(const std::string& text, int indent);
std::string fact(std::string_view label, const std::string& text);
std::string lines_of(std::string_view title, const std::vector<std::string>& lines);
std::string place_text(const Frame& frame);
std::string stage_text(const StageFound& stage, std::string_view why_unknown);
// What was going on at the moment explained: "stage", "your line" or "called by", "moment".
std::vector<std::pair<std::string_view, std::string>> facts_of(const SnapshotExplanation& explanation);
std::string advice_text(const std::vector<Advice>& all);

nlohmann::ordered_json frame_json(const std::optional<Frame>& frame);
nlohmann::ordered_json advice_json(const std::vector<Advice>& all);

}  // namespace snug
