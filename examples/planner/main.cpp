// Will it fit? planner_example MODEL MEMORY_GIB [key=value]...
// Prints the verdict, where the bytes are at the peak, and what would help. Exit codes as snug plan's: 0 fits, 1 error, 3
// does not.

#include <snug/planner.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace {

int usage() {
  std::cerr << "planner_example MODEL MEMORY_GIB [key=value]...\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return usage();
  snug::planner::Request request;
  request.model = argv[1];
  request.memory_bytes = static_cast<int64_t>(std::atof(argv[2]) * (1 << 30));
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return usage();
    request.recipe.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }

  const snug::planner::Result result = snug::planner::plan(request);
  if (!result.error.empty()) {
    std::cerr << result.error << '\n';
    return 1;
  }
  std::cout << (result.fits ? "fits" : "does not fit") << ": " << result.peak_bytes << " of " << result.budget_bytes
            << " bytes, peak in " << result.peak_stage << '\n';
  for (const auto& [name, bytes] : result.breakdown)
    if (bytes > 0) std::cout << "  " << name << ' ' << bytes << '\n';
  if (!result.fits) std::cout << result.smallest_change << '\n';
  return result.fits ? 0 : 3;
}
