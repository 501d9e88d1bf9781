// Will it fit, and what fits best? planner_example [--fit] [--json] MODEL MEMORY [key=value]...
// MEMORY is a number of GiB or a card, such as "RTX 4090". Prints the verdict, where the bytes are at the peak, and what
// would help; with --fit the best recipe for that memory instead. Exit codes as snug's: 0 fits, 1 error, 3 does not.

#include <snug/planner.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace {

using namespace snug::planner;

int usage() {
  std::cerr << "planner_example [--fit] [--json] MODEL MEMORY_GIB|CARD [key=value]...\n";
  return 2;
}

void print(const Result& result) {
  std::cout << (result.fits ? "fits" : "does not fit") << ": " << result.peak_bytes << " of " << result.budget_bytes
            << " bytes, peak in " << result.peak_stage << '\n';
  for (const auto& [name, bytes] : result.breakdown)
    if (bytes > 0) std::cout << "  " << name << ' ' << bytes << '\n';
  if (!result.fits) std::cout << result.smallest_change << '\n';
}

void print(const Fit& fit) {
  const auto print_settings = [](const Settings& settings) {
    for (const auto& [key, value] : settings) std::cout << "  " << key << ' ' << value << '\n';
  };
  if (fit.fits) {
    std::cout << "best: " << fit.method << ", " << fit.best.peak_bytes << " of " << fit.budget_bytes << " bytes\n";
    print_settings(fit.best.recipe);
  } else {
    std::cout << "nothing fits " << fit.budget_bytes << " bytes; with this " << fit.way_out_bytes << " are needed\n";
    print_settings(fit.way_out);
  }
}

template <class Answer>
int show(const Answer& answer, bool json) {
  if (!answer.error.empty()) {
    std::cerr << answer.error << '\n';
    return 1;
  }
  if (json) {
    std::cout << answer.json << '\n';
  } else {
    print(answer);
  }
  return answer.fits ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  int next = 1;
  const auto given = [&](const std::string& flag) { return next < argc && argv[next] == flag && ++next > 0; };
  const bool searches = given("--fit"), json = given("--json");
  if (argc < next + 2) return usage();
  Request request;
  request.model = argv[next++];
  const char* const memory = argv[next++];
  char* end = nullptr;
  const double gib = std::strtod(memory, &end);
  if (*end == '\0') {
    request.memory_bytes = static_cast<int64_t>(gib * (1 << 30));
  } else {
    request.accelerator = memory;
  }
  for (; next < argc; ++next) {
    const std::string word = argv[next];
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return usage();
    request.recipe.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return searches ? show(fit(request), json) : show(plan(request), json);
}
