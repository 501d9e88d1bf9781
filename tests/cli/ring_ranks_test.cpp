// Processes that split sequences and pass keys and values round a ring: what one process learns, with the documents and
// windows of a sequence, beside all else that ranks share, in the memory that was planned.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cli/support_ranks.h"
#include "families.h"

namespace snug::cli_tests {

namespace {

Mesh ring(int64_t ranks, int64_t context, int64_t stage = 0, int64_t replicas = 1, int64_t tensor = 1, int64_t expert = 1,
          int64_t pipeline = 1) {
  return {ranks, tensor, context, stage, replicas, expert, pipeline, 1, true};
}

// Rows are packed: a sequence has several documents.
TEST_F(Ranks, that_pass_keys_round_learn_the_same) {
  const Mesh meshes[] = {ring(2, 2),    ring(4, 4),    ring(8, 8),    ring(2, 2, 3),    ring(4, 2, 1),
                         ring(4, 2, 2), ring(4, 4, 3), ring(8, 4, 3), ring(8, 2, 3, 2), ring(8, 8, 3)};
  for (const Kind& kind : snug::testing::thinned(kKinds, 2)) compare(work_, kind, meshes);
}

TEST_F(Ranks, that_pass_keys_round_beside_products_layers_and_experts_learn_the_same) {
  Mesh meshes[] = {ring(4, 2, 0, 1, 2), ring(8, 4, 3, 1, 2), ring(8, 2, 1, 1, 2, 1, 2), ring(8, 4, 0, 1, 1, 1, 2),
                   ring(8, 2, 3, 1, 1, 1, 2)};
  meshes[4].chunks = 2;
  const Workspace deep(Json{{"num_hidden_layers", 4}});
  for (const Kind& kind : snug::testing::thinned(std::span(kKinds).first(2), 2)) compare(deep, kind, meshes);
  const Workspace mixture(mixture_config());
  compare(mixture, kKinds[0], std::vector<Mesh>{ring(4, 4, 1, 1, 1, 2), ring(8, 4, 3, 1, 1, 4)});
}

// Windows of less than a stretch, of a stretch and more, in every layer and in every second; scores that are capped.
TEST_F(Ranks, that_pass_keys_round_a_windowed_model_learn_the_same) {
  for (auto [name, config] : snug::test::families(257)) {
    if (name != "mistral" && name != "gemma2") continue;
    for (const int64_t window : {3, 8, 20}) {
      config["sliding_window"] = window;
      const Workspace windowed(config);
      compare(windowed, kKinds[0], std::vector<Mesh>{ring(4, 4), ring(4, 2, 3)});
    }
  }
}

TEST_F(Ranks, that_pass_keys_round_in_the_same_world_give_the_same_bits) {
  for (const Kind& kind : snug::testing::thinned(kKinds, 3))
    for (const Mesh& mesh : {ring(4, 4), ring(8, 4, 3), ring(8, 2, 1, 1, 2, 1, 2)}) {
      if (kind.name == std::string("qlora") && mesh.tensor > 1) continue;
      std::vector<std::string> written;
      for (const char* name : {"first", "second"}) {
        run(work_ / name, mesh.ranks, mesh.stage, 6 * mesh.together(),
            joined(joined(kind.keys, mesh.keys()),
                   {"--max-steps", "6", "--lr", "1e-3", "--threads", "3", "--overwrite-output-dir"}));
        written.push_back(contents(work_ / name / kind.weights));
        for (const std::string& line : step_lines(work_ / name)) written.back() += line;
      }
      EXPECT_TRUE(written[0] == written[1]) << kind.name << " " << mesh.name();
    }
}

// In bf16 and fp16, with blocks that are computed again, and evaluated on the way: as with gathered keys, up to what is
// rounded.
TEST_F(Ranks, that_pass_keys_round_in_halves_learn_and_evaluate_as_those_that_gather) {
  constexpr int kSteps = snug::testing::few_of(8);
  const std::vector<std::string> common =
      joined({"--method", "full", "--eval-data", work_.data().string(), "--eval-steps", std::to_string(kSteps / 2)},
             steps_and_saves(kSteps));
  const auto evaluations = [](const fs::path& output) {
    std::vector<double> values;
    for (const Json& line : read_metrics(output))
      if (line.contains("eval_loss")) values.push_back(line["eval_loss"].get<double>());
    return values;
  };
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--bf16"}, {"--bf16", "--gradient-checkpointing"}, {"--fp16"}, {"--gradient-checkpointing"}}) {
    const std::vector<std::string> keys = joined(joined(common, more), {"--overwrite-output-dir"});
    Mesh mesh = ring(4, 4, 1);
    run(work_ / "ring", mesh.ranks, mesh.stage, 8 * mesh.together(), joined(keys, mesh.keys()));
    mesh.ring = false;
    run(work_ / "gathered", mesh.ranks, mesh.stage, 8 * mesh.together(), joined(keys, mesh.keys()));
    const double tolerance = more[0] == "--gradient-checkpointing" ? 1e-5 : 5e-3;
    EXPECT_LE(farthest(losses(work_ / "gathered"), losses(work_ / "ring")), tolerance) << more.back();
    EXPECT_EQ(evaluations(work_ / "ring").size(), 2u);
    EXPECT_LE(farthest(evaluations(work_ / "gathered"), evaluations(work_ / "ring")), tolerance) << more.back();
  }
}

// A checkpoint knows nothing of how keys travel.
TEST_F(Ranks, go_on_with_keys_that_are_passed_round) {
  constexpr int kSteps = snug::testing::few_of(10);
  const std::vector<std::string> keys = joined({"--method", "full"}, steps_and_saves(kSteps));
  const Mesh first{4, 1, 4, 0, 1};
  run(work_ / "truth", 4, 0, 8 * 4, joined(keys, first.keys()));
  const Mesh mesh = ring(2, 2, 3);
  fs::copy(work_ / "truth", work_ / "ring", fs::copy_options::recursive);
  fs::remove_all(work_ / "ring" / checkpoint(kSteps));
  run(work_ / "ring", 2, 3, 8 * 2, joined(joined(keys, mesh.keys()), {"--resume-from-checkpoint", "true"}));
  EXPECT_LE(farthest(losses(work_ / "truth"), losses(work_ / "ring")), 1e-5);
  EXPECT_LE(farthest(work_ / "truth" / "model.safetensors", work_ / "ring" / "model.safetensors"), 1e-4);
}

TEST_F(Ranks, are_told_how_keys_travel_in_the_words_of_other_trainers) {
  const auto planned = [&](const std::vector<std::string>& more) {
    return run_program(joined(
        {"plan", work_.model().string(), "--runtime", "snug", "--num-processes", "4", "--cp-size", "4", "--json"}, more));
  };
  const auto of = [&](const std::string& recipe) {
    put(work_ / "recipe.yaml", "model: " + work_.model().string() + "\nnum_processes: 4\n" + recipe);
    const ProcessResult result = run_program({"plan", (work_ / "recipe.yaml").string(), "--runtime", "snug", "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return Json::parse(result.output)["ranks"];
  };
  const Json gathered = Json::parse(planned({}).output)["ranks"];
  const Json ring = Json::parse(planned({"--cp-comm-type", "p2p"}).output)["ranks"];
  EXPECT_NE(gathered, ring);
  EXPECT_EQ(of("cp_size: 4\ncp_comm_type: p2p\n"), ring);
  EXPECT_EQ(of("parallelism_config_cp_size: 4\nparallelism_config_cp_comm_strategy: alltoall\n"), ring);
  EXPECT_EQ(of("parallelism_config_cp_size: 4\nparallelism_config_cp_comm_strategy: allgather\n"), gathered);
  for (const char* other : {"a2a", "a2a+p2p"}) {
    const ProcessResult refused = planned({"--cp-comm-type", other});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.error.find("sequences are split, not heads"), std::string::npos) << refused.error;
  }
}

}  // namespace

}  // namespace snug::cli_tests
