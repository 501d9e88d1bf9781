#include "train/metrics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/error.h"
#include "temporary_directory.h"

namespace snug {
namespace {

namespace fs = std::filesystem;

class Metrics : public ::testing::Test {
 protected:
  static std::string line(int64_t step) {
    return fmt::format("{{\"step\": {}, \"loss\": {}}}\n", step, 1.0 / static_cast<double>(step + 1));
  }
  std::string text() const {
    std::ifstream file(path());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path path() const { return directory_ / "metrics.jsonl"; }

  test::TemporaryDirectory directory_;
};

TEST_F(Metrics, of_a_long_run_are_kept_up_to_the_step_that_it_goes_on_from) {
  std::string whole, kept;
  for (int64_t step = 1; step <= 5000; ++step) {
    whole += line(step);
    if (step == 900) whole += "{\"summary\": {\"planned_peak_bytes\": 1, \"steps\": 900}}\n";
    if (step <= 4321) kept += line(step);
  }
  whole += "{\"step\": 17, \"lo";  // killed while writing
  std::ofstream(path()) << whole;
  MetricsFile metrics(path(), 4321);
  EXPECT_TRUE(text() == kept) << text().size() << " bytes, not " << kept.size();
  metrics.write(StepMetrics{.step = 4322, .loss = 0.5});
  EXPECT_TRUE(text().starts_with(kept + "{\"step\": 4322, \"loss\": 0.5, "));
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator()), 1);
}

TEST_F(Metrics, of_an_earlier_run_are_dropped_by_one_that_starts_anew) {
  std::ofstream(path()) << line(1) << line(2);
  MetricsFile metrics(path(), 0);
  EXPECT_EQ(text(), "");
}

TEST_F(Metrics, that_are_gone_do_not_keep_a_run_from_going_on) {
  MetricsFile metrics(path(), 5);
  metrics.write(StepMetrics{.step = 6});
  EXPECT_TRUE(text().starts_with("{\"step\": 6, "));
}

TEST_F(Metrics, that_cannot_be_read_are_not_taken_for_none) {
  fs::create_directory(path());
  EXPECT_THROW(MetricsFile(path(), 5), Error);
}

}  // namespace
}  // namespace snug
