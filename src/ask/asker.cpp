#include "ask/asker.h"

#include <fmt/format.h>

#include "ask/options.h"
#include "base/error.h"

namespace snug {

CountedData Asker::count_rows(const Plan& plan) {
  throw Error("rows are counted by the program alone", plan.recipe.data,
              "give --examples N --example-tokens M in place of --data");
}

int exit_code_of(const std::function<int()>& answer, Asker& asker) {
  try {
    return answer();
  } catch (const UsageError& error) {
    asker.tell(fmt::format("snug: {}\n", error.what()));
    return 2;
  } catch (const std::exception& error) {
    asker.tell(fmt::format("snug: {}\n", error.what()));
    return 1;
  }
}

}  // namespace snug
