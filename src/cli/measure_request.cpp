#include "cli/measure_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "ask/options.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/command_table.h"
#include "recipe/bytes.h"

namespace snug::cli {

namespace {

constexpr int64_t kMostDevices = 64, kMostSteps = 1'000'000;

int64_t number_of(std::string_view word, std::string_view flag, int64_t most) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < 1 || value > most)
    throw UsageError(fmt::format("{}: '{}' is no number from 1 to {}", flag, word, most));
  return value;
}

void take_flag(MeasureWords& request, const Flag& flag) {
  const auto& [name, value] = flag;
  if (name == "gpu") {
    request.gpu = value;
    request.gpu_told = true;
  } else if (name == "memory") {
    request.memory_bytes = parse_bytes(value, "--memory");
  } else if (name == "gpus") {
    request.run.device.count = static_cast<int32_t>(number_of(value, "--gpus", kMostDevices));
  } else if (name == "steps") {
    request.run.steps = number_of(value, "--steps", kMostSteps);
  } else if (name == "json") {
    request.json = value;
  } else if (name == "snapshot") {
    request.snapshot = value;
  } else if (name == "synthetic") {
    request.run.synthetic = true;
  }
}

}  // namespace

MeasureWords parse_measure(std::span<char* const> words, const std::string& command) {
  const auto end = std::ranges::find(words, std::string_view("--"), [](const char* word) { return std::string_view(word); });
  const auto ours = static_cast<size_t>(end - words.begin());
  const Options options = parse_options(words.first(ours), own_flags("measure"));
  if (!options.positional.empty())
    throw UsageError(fmt::format("the command stands after --: snug {} --gpu RTX-4090 -- python train.py", command));
  MeasureWords request;
  for (const Flag& flag : options.flags) take_flag(request, flag);
  for (size_t i = ours + 1; i < words.size(); ++i) request.run.command.emplace_back(words[i]);
  if (request.run.command.empty())
    throw UsageError(fmt::format("which command? snug {} --gpu RTX-4090 -- python train.py", command));
  return request;
}

const Accelerator& card_of(const std::string& name) {
  const Accelerator* card = find_accelerator(name);
  if (card == nullptr)
    throw Error("there is no accelerator '" + name + "' in the catalogue", "--gpu",
                "did you mean " + nearest_accelerator(name) + "? snug gpus lists all");
  if (card->compute_capability == 0)
    throw Error(card->name + " is not a CUDA card, and the null device is one", "--gpu", "snug gpus lists those of NVIDIA");
  return *card;
}

// The null device that the flags ask for: a card, or that card with another memory.
NullDevice device_of(const MeasureWords& request, const Accelerator& card) {
  NullDevice device = request.run.device;
  device.name = "NVIDIA " + card.name;
  device.memory_bytes = request.memory_bytes.value_or(card.usable_bytes);
  device.context_bytes = card.context_most_bytes;  // what surely is left for the program
  device.compute_capability = card.compute_capability;
  device.multiprocessors = card.multiprocessors;
  if (device.memory_bytes <= device.context_bytes)
    throw Error(fmt::format("{} is less than CUDA's own context takes", format_bytes(device.memory_bytes)), "--memory",
                "give the memory of the whole card");
  return device;
}

// The first rank that ran out, if one did.
const MeasuredRank* out_of_memory(const Measurement& measurement) {
  const auto it =
      std::ranges::find_if(measurement.ranks, [](const MeasuredRank& rank) { return rank.out_of_memory.has_value(); });
  return it == measurement.ranks.end() ? nullptr : &*it;
}

void write_json(const std::string& path, const nlohmann::ordered_json& json) {
  const std::string text = json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  OutputFile file(path);
  file.write(std::as_bytes(std::span(text.data(), text.size())));
  file.commit();
}

}  // namespace snug::cli
