#include "cli/options.h"

#include <algorithm>

#include "cli/arguments.h"

namespace snug::cli {

std::string Options::value(const std::string& flag, const std::string& otherwise) const {
  const auto [first, last] = flags.equal_range(flag);
  return first == last ? otherwise : std::prev(last)->second;
}

std::vector<std::string> Options::values(const std::string& flag) const {
  std::vector<std::string> list;
  for (auto [at, last] = flags.equal_range(flag); at != last; ++at) list.push_back(at->second);
  return list;
}

Options parse_options(std::span<char* const> words, const std::vector<std::string_view>& known) {
  Options options;
  const auto knows = [&](const std::string& name) { return std::find(known.begin(), known.end(), name) != known.end(); };
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i];
    if (!word.starts_with("--")) {
      options.positional.push_back(word);
      continue;
    }
    const size_t equals = word.find('=');
    std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::replace(name.begin(), name.end(), '_', '-');
    if (knows(name)) {
      if (equals != std::string::npos) throw UsageError("--" + name + " takes no value");
      options.flags.emplace(name, "");
    } else if (knows(name + "=")) {
      const bool follows = i + 1 < words.size() && !std::string_view(words[i + 1]).starts_with("--");
      if (equals == std::string::npos && !follows) throw UsageError("--" + name + " needs a value");
      options.flags.emplace(name, equals != std::string::npos ? word.substr(equals + 1) : std::string(words[++i]));
    } else {
      throw UsageError("there is no flag --" + name + " here");
    }
  }
  return options;
}

}  // namespace snug::cli
