// Ranks of machines that share no file system: data are read where the first rank is, and what lasts is written there.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

#include "cli/support_ranks.h"

namespace snug::cli_tests {

namespace {

// The machine of each rank, by its number.
using Machines = std::vector<int>;

class RankPlaces : public Ranks {
 protected:
  fs::path machine(int number) const { return work_ / fmt::format("machine-{}", number); }

  // Starts each rank in its machine's directory, as a launcher does, with an output directory and data named within it.
  std::vector<ProcessResult> start(const Mesh& mesh, const Machines& machines, const std::vector<std::string>& keys) {
    std::vector<std::string> command = words("out", mesh.ranks, mesh.stage, 4 * mesh.together(), joined(keys, mesh.keys()));
    std::string& data = *(std::ranges::find(command, "--data") + 1);
    fs::create_directories(machine(machines.front()));
    fs::copy_file(data, machine(machines.front()) / "rows.jsonl", fs::copy_options::overwrite_existing);
    data = "rows.jsonl";
    const std::string job = fmt::format("{}{:03}", getpid(), ++jobs_);
    std::vector<std::unique_ptr<Process>> ranks;
    for (size_t rank = 0; rank < machines.size(); ++rank) {
      fs::create_directories(machine(machines[rank]));
      ProcessOptions options{.directory = machine(machines[rank])};
      options.environment = {{"RANK", std::to_string(rank)},
                             {"WORLD_SIZE", std::to_string(machines.size())},
                             {"LOCAL_WORLD_SIZE", std::to_string(machines.size())},
                             {"MASTER_PORT", job}};
      ranks.push_back(std::make_unique<Process>(command, options));
    }
    std::vector<ProcessResult> results;
    for (const auto& rank : ranks) results.push_back(rank->finish());
    return results;
  }

  void run_apart(const Mesh& mesh, const Machines& machines, const std::vector<std::string>& keys) {
    for (const ProcessResult& result : start(mesh, machines, keys)) EXPECT_EQ(result.exit_code, 0) << result.error;
  }

  // That the first machine holds what a run with one directory wrote, to the bit, and the others nothing that lasts.
  void expect_as_together(const fs::path& together, const Machines& machines, const Kind& kind, int steps) const {
    const fs::path apart = machine(machines.front()) / "out";
    for (const fs::path& file :
         {fs::path(kind.weights), checkpoint(steps) / fs::path(kind.weights),
          checkpoint(steps / 2) / fs::path("optimizer.safetensors"), checkpoint(steps) / fs::path("optimizer.safetensors")})
      EXPECT_TRUE(contents(together / file) == contents(apart / file)) << file;
    EXPECT_EQ(step_lines(together), step_lines(apart));
    const Json summary = summary_of(apart);
    const auto planned = summary["planned_peak_bytes"].get<int64_t>();
    for (const Json& peak : summary["rank_peak_bytes"])
      EXPECT_TRUE(snug::testing::kSanitized || peak.get<int64_t>() <= planned) << peak << " of " << planned;
    for (const int number : machines) {
      EXPECT_EQ(unfinished(machine(number) / "out"), std::vector<std::string>());
      if (number == machines.front()) continue;
      for (const auto& entry : fs::directory_iterator(machine(number) / "out"))
        EXPECT_TRUE(entry.path().filename() == "dataset" || entry.path().filename() == ".lock") << entry.path();
    }
  }

 private:
  int jobs_ = 0;
};

TEST_F(RankPlaces, machines_that_share_no_files_learn_and_save_the_same_bits) {
  constexpr int kSteps = snug::testing::few_of(10);
  const std::tuple<Kind, Mesh, Machines> cases[] = {{kKinds[0], {4, 1, 1, 3, 1}, {0, 0, 1, 1}},
                                                    {kKinds[0], {4, 2, 1, 1, 1, 1, 2}, {0, 1, 2, 1}},
                                                    {kKinds[1], {3, 1, 1, 2, 1}, {5, 1, 2}},
                                                    {kKinds[2], {2, 1, 1, 0, 1}, {0, 1}}};
  for (const auto& [kind, mesh, machines] : snug::testing::thinned(std::span(cases), 2)) {
    std::vector<std::string> keys = joined(kind.keys, steps_and_saves(kSteps));
    if (mesh.pipeline == 1)
      keys = joined(keys,
                    {"--val-size", "0.2", "--eval-steps", std::to_string(kSteps / 2), "--load-best-model-at-end", "true"});
    const fs::path together = work_ / "together";
    run(together, mesh.ranks, mesh.stage, 4 * mesh.together(), joined(keys, mesh.keys()));
    run_apart(mesh, machines, keys);
    expect_as_together(together, machines, kind, kSteps);

    const fs::path first = machine(machines.front()) / "out";
    fs::remove_all(first / checkpoint(kSteps));
    fs::remove(first / kind.weights);
    run_apart(mesh, machines, joined(keys, {"--resume-from-checkpoint", "true"}));
    expect_as_together(together, machines, kind, kSteps);
    fs::remove_all(together);
    for (const int number : machines) fs::remove_all(machine(number));
  }
}

// What keeps one machine from writing ends all, told once.
TEST_F(RankPlaces, a_machine_that_cannot_write_is_told_of_once) {
  fs::create_directories(machine(1));
  put(machine(1) / "out", "a file in the directory's place");
  const std::vector<ProcessResult> results = start({2, 1, 1, 0, 1}, {0, 1}, {"--method", "lora", "--max-steps", "2"});
  for (const ProcessResult& result : results) EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(results[0].error.find("snug: "), std::string::npos) << results[0].error;
  EXPECT_NE(results[1].error.find("snug: out: the directory cannot be created"), std::string::npos) << results[1].error;
}

}  // namespace

}  // namespace snug::cli_tests
