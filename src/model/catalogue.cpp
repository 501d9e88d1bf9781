#include "model/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <limits>

#include "base/edit_distance.h"
#include "base/error.h"
#include "model/config.h"

namespace snug {

extern const std::string_view kModelsText;  // models.txt

namespace {

// A line of models.txt: "name other-name … {config.json}". Only the line that is asked for is parsed.
struct Entry {
  std::string_view names, config;

  std::string_view name() const { return names.substr(0, names.find(' ')); }
};

// Calls `visit` with each entry until it returns true.
template <class Visit>
void visit_entries(const Visit& visit) {
  for (std::string_view text = kModelsText; !text.empty();) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t brace = line.find('{');
    if (line.empty() || line.front() == '#' || brace == std::string_view::npos) continue;
    if (visit(Entry{line.substr(0, brace), line.substr(brace)})) return;
  }
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string_view without_owner(std::string_view name) {
  const size_t slash = name.find('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

// True if `asked` (lower case) is one of the entry's names in full or without its owner.
bool answers_to(const Entry& entry, std::string_view asked) {
  const bool with_owner = asked.find('/') != std::string_view::npos;
  for (std::string_view rest = entry.names; !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    if (lower(with_owner ? name : without_owner(name)) == asked) return true;
  }
  return false;
}

}  // namespace

std::optional<ModelSpec> find_model(std::string_view name) {
  const std::string asked = lower(name);
  std::optional<ModelSpec> spec;
  visit_entries([&](const Entry& entry) {
    if (!answers_to(entry, asked)) return false;
    spec = parse_config(entry.config, std::string(entry.name()));
    return true;
  });
  return spec;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  visit_entries([&](const Entry& entry) {
    names.emplace_back(entry.name());
    return false;
  });
  return names;
}

std::string nearest_model_name(std::string_view name) {
  const std::string asked = lower(name.substr(0, 200));
  const bool with_owner = asked.find('/') != std::string::npos;
  std::string_view nearest;
  int64_t least = std::numeric_limits<int64_t>::max();
  visit_entries([&](const Entry& entry) {
    const int64_t distance = edit_distance(asked, lower(with_owner ? entry.name() : without_owner(entry.name())));
    if (distance < least) {
      least = distance;
      nearest = entry.name();
    }
    return false;
  });
  return std::string(nearest);
}

ModelSpec resolve_model(const std::string& argument) {
  if (argument.empty())
    throw Error("no model is given", "", "give a checkpoint directory, a config.json or a catalogue name");
  std::error_code error;
  if (std::filesystem::exists(argument, error)) return read_config(argument);
  if (auto spec = find_model(argument)) return *spec;
  throw Error(fmt::format("'{}' is neither a path nor a model of the catalogue", argument), "",
              fmt::format("nearest: {}; `snug models` lists them", nearest_model_name(argument)));
}

}  // namespace snug
