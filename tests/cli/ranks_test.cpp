// Several processes train together: the same losses and weights as one with the same effective batch, the memory and the
// bytes that were planned.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <random>

#include "cli/support_ranks.h"
#include "plan/ranks.h"
#include "program/compile.h"

namespace snug::cli_tests {

namespace {

TEST_F(Ranks, learn_what_one_learns_with_the_same_effective_batch) {
  const std::vector<std::string> common = {
      "--max-steps", std::to_string(snug::testing::few_of(20)), "--lr", "1e-4", "--save-steps", "0"};
  for (const Kind& kind : snug::testing::thinned(kKinds, 2)) {
    const std::vector<std::string> keys = joined(kind.keys, common);
    const fs::path alone = work_ / kind.name;
    run(alone, 1, 0, 8, keys);
    for (const int64_t ranks : snug::testing::thinned(std::vector<int64_t>{2, 4, 8}, 3))
      for (const int64_t stage : {0, 1, 2, 3}) {
        const fs::path output = work_ / fmt::format("{}-{}-{}", kind.name, ranks, stage);
        run(output, ranks, stage, 8, keys);
        EXPECT_LE(farthest(losses(alone), losses(output)), 1e-5) << output;
        EXPECT_LE(farthest(alone / kind.weights, output / kind.weights), 1e-4) << output;
        fs::remove_all(output);
      }
  }
}

// Hybrid sharding: copies of what is shared out, whose gradients are summed over copies too.
TEST_F(Ranks, of_several_replicas_learn_the_same) {
  constexpr int kSteps = snug::testing::few_of(20);
  const std::vector<std::string> common = steps_and_saves(kSteps);
  const fs::path states = fs::path(checkpoint(kSteps)) / "optimizer.safetensors";
  for (const Kind& kind : snug::testing::thinned(kKinds, 2)) {
    const std::vector<std::string> keys = joined(kind.keys, common);
    const fs::path alone = work_ / kind.name;
    run(alone, 1, 0, 8, keys);
    for (const auto& [ranks, replicas] : {std::pair(4, 2), std::pair(8, 2), std::pair(8, 4), std::pair(2, 2)})
      for (const int64_t stage : {1, 2, 3}) {
        const fs::path output = work_ / fmt::format("{}-{}-{}-{}", kind.name, ranks, replicas, stage);
        run(output, ranks, stage, 8, joined(keys, {"--dp-replicate-size", std::to_string(replicas)}));
        EXPECT_LE(farthest(losses(alone), losses(output)), 1e-5) << output;
        EXPECT_LE(farthest(alone / kind.weights, output / kind.weights), 1e-4) << output;
        EXPECT_LE(farthest(alone / states, output / states), 1e-3) << output;
        fs::remove_all(output);
      }
  }
}

TEST_F(Ranks, that_split_sequences_learn_the_same) {
  constexpr Mesh kMeshes[] = {{2, 1, 2, 0, 1}, {4, 1, 4, 0, 1}, {8, 1, 8, 0, 1}, {2, 1, 2, 3, 1},
                              {4, 1, 2, 1, 1}, {4, 1, 2, 2, 1}, {4, 1, 2, 3, 1}, {8, 1, 2, 3, 2}};
  for (const Kind& kind : snug::testing::thinned(kKinds, 2)) compare(work_, kind, kMeshes);
}

// Each has a stretch of the rows, and takes it tile by tile.
TEST_F(Ranks, that_split_sequences_and_tile_mlps_learn_the_same) {
  constexpr Mesh kMeshes[] = {{2, 1, 2, 0, 1}, {4, 1, 4, 3, 1}, {4, 1, 2, 1, 1}};
  for (Kind kind : {kKinds[0], kKinds[1]}) {
    kind.keys = joined(kind.keys, {"--tiled-mlp", "--tiled-mlp-num-shards", "2"});
    compare(work_, kind, kMeshes);
  }
}

TEST_F(Ranks, that_split_products_learn_the_same) {
  constexpr Mesh kMeshes[] = {{2, 2, 1, 0, 1}, {2, 2, 1, 1, 1}, {2, 2, 1, 3, 1}, {4, 2, 1, 0, 1},
                              {4, 2, 1, 1, 1}, {4, 2, 1, 2, 2}, {4, 2, 1, 2, 1}, {4, 2, 1, 3, 1},
                              {8, 2, 1, 3, 2}, {4, 2, 2, 0, 1}, {8, 2, 2, 3, 1}};
  for (const Kind& kind : snug::testing::thinned(std::span(kKinds).first(2), 2)) compare(work_, kind, kMeshes);
}

TEST_F(Ranks, that_split_layers_learn_the_same) {
  const Workspace deep(Json{{"num_hidden_layers", 6}});
  constexpr Mesh kMeshes[] = {{2, 1, 1, 0, 1, 1, 2}, {3, 1, 1, 0, 1, 1, 3}, {4, 1, 1, 0, 1, 1, 4},
                              {4, 1, 1, 0, 1, 1, 2}, {8, 1, 1, 0, 1, 1, 4}, {4, 2, 1, 0, 1, 1, 2},
                              {8, 2, 1, 1, 1, 1, 2}, {4, 1, 1, 3, 1, 1, 2}, {8, 1, 2, 2, 1, 1, 2}};
  for (const Kind& kind : snug::testing::thinned(kKinds, 2)) {
    Kind unsplit = kind;
    if (kind.name == std::string("qlora")) unsplit.keys.push_back("--double-quantization"), unsplit.keys.push_back("false");
    std::vector<Mesh> meshes(std::begin(kMeshes), std::end(kMeshes));
    if (kind.name == std::string("qlora")) std::erase_if(meshes, [](const Mesh& mesh) { return mesh.tensor > 1; });
    compare(deep, unsplit, meshes);
  }
}

// Chunks that come round several times; nine layers are cut unevenly.
TEST_F(Ranks, that_have_several_chunks_of_layers_learn_the_same) {
  const Workspace deep(Json{{"num_hidden_layers", 9}, {"tie_word_embeddings", true}});
  constexpr Mesh kMeshes[] = {{2, 1, 1, 0, 1, 1, 2, 2}, {2, 1, 1, 0, 1, 1, 2, 4}, {4, 1, 1, 0, 1, 1, 4, 2},
                              {4, 1, 1, 1, 1, 1, 2, 3}, {4, 2, 1, 0, 1, 1, 2, 2}, {4, 1, 1, 3, 1, 1, 2, 2},
                              {8, 1, 2, 3, 1, 1, 2, 3}, {8, 2, 1, 1, 1, 1, 4, 2}, {8, 1, 1, 3, 2, 1, 2, 2}};
  for (const Kind& kind : snug::testing::thinned(kKinds, 2)) {
    Kind clipped = kind;
    clipped.keys = joined(clipped.keys, {"--max-grad-norm", "0.1"});
    if (kind.name == std::string("qlora")) clipped.keys = joined(clipped.keys, {"--double-quantization", "false"});
    std::vector<Mesh> meshes(std::begin(kMeshes), std::end(kMeshes));
    if (kind.name == std::string("qlora")) std::erase_if(meshes, [](const Mesh& mesh) { return mesh.tensor > 1; });
    compare(deep, clipped, meshes);
  }
}

TEST_F(Ranks, that_have_chunks_of_layers_with_experts_learn_the_same) {
  Json config = mixture_config();
  config["num_hidden_layers"] = 4;
  const Workspace mixture(config);
  constexpr Mesh kMeshes[] = {{4, 1, 1, 1, 1, 2, 2, 2}, {8, 1, 1, 3, 2, 2, 2, 2}};
  compare(mixture, kKinds[0], kMeshes);
}

// The first stage and the last both have the embedding, and train it alike.
TEST_F(Ranks, that_split_layers_beside_a_tied_embedding_learn_the_same) {
  const Workspace tied(Json{{"num_hidden_layers", 6}, {"tie_word_embeddings", true}});
  constexpr Mesh kMeshes[] = {{2, 1, 1, 0, 1, 1, 2}, {3, 1, 1, 0, 1, 1, 3}, {8, 1, 1, 0, 1, 1, 4}, {4, 2, 1, 0, 1, 1, 2},
                              {4, 1, 1, 1, 1, 1, 2}, {4, 1, 1, 3, 1, 1, 2}, {8, 1, 2, 2, 1, 1, 2}, {8, 1, 1, 3, 2, 1, 2}};
  Kind clipped = kKinds[0];
  clipped.keys = joined(clipped.keys, {"--max-grad-norm", "0.1"});
  compare(tied, clipped, kMeshes);
}

TEST_F(Ranks, that_split_experts_learn_the_same) {
  const Workspace mixture(mixture_config());
  constexpr Mesh kMeshes[] = {{2, 1, 1, 0, 1, 2}, {4, 1, 1, 0, 1, 4}, {8, 1, 1, 0, 1, 8}, {4, 1, 1, 0, 1, 2},
                              {4, 1, 1, 1, 1, 2}, {4, 1, 1, 2, 1, 2}, {4, 1, 1, 3, 1, 2}, {4, 1, 1, 1, 1, 4},
                              {8, 1, 1, 3, 2, 2}, {8, 1, 2, 1, 1, 4}};
  for (Kind kind : snug::testing::thinned(kKinds, 2)) {
    if (kind.name != std::string("full")) kind.keys.back() = "q_proj,v_proj";
    compare(mixture, kind, kMeshes);
  }
}

// Each process quantizes what it has: the same codes where blocks of 64 are whole in its share of a row. Adam divides by
// what it is given: with its usual epsilon of 1e-8 an element whose gradient is 0 but for rounding moves as far as any.
TEST_F(Ranks, that_split_quantized_products_learn_the_same) {
  const Workspace wide(
      {{"hidden_size", 256}, {"intermediate_size", 512}, {"num_attention_heads", 8}, {"num_key_value_heads", 4}});
  constexpr Mesh kMeshes[] = {{2, 2, 1, 0, 1}, {4, 4, 1, 0, 1}, {4, 2, 1, 3, 1}, {8, 4, 2, 3, 1}};
  Kind kind = kKinds[2];
  kind.keys = joined(kind.keys, {"--double-quantization", "false", "--adam-epsilon", "1e-6"});
  compare(wide, kind, kMeshes);
}

TEST_F(Ranks, the_same_world_gives_the_same_bits) {
  for (const Kind& kind : snug::testing::thinned(kKinds, 3))
    for (const Mesh& mesh : {Mesh{3, 1, 1, 0, 1}, Mesh{3, 1, 1, 3, 1}, Mesh{8, 2, 2, 1, 1, 1, 2}}) {
      std::vector<std::string> written;
      for (const char* name : {"first", "second"}) {
        run(work_ / name, mesh.ranks, mesh.stage, 6 * mesh.together(),
            joined(joined(kind.keys, mesh.keys()), {"--max-steps", "6", "--lr", "1e-3", "--overwrite-output-dir"}));
        written.push_back(contents(work_ / name / kind.weights));
        for (const std::string& line : step_lines(work_ / name)) written.back() += line;
      }
      EXPECT_TRUE(written[0] == written[1]) << kind.name << " " << mesh.name();
    }
}

// Dropout and noise are drawn for the micro-batch, whoever computes it; evaluation counts over all ranks.
TEST_F(Ranks, draw_and_evaluate_as_one_does) {
  const std::vector<std::string> keys = {
      "--method",     "lora", "--lora-dropout", "0.2",  "--neftune-noise-alpha", "5",
      "--max-steps",  "6",    "--lr",           "1e-3", "--eval-data",           work_.data().string(),
      "--eval-steps", "3",    "--packing",      "false"};
  run(work_ / "alone", 1, 0, 6, keys);
  const auto evaluations = [](const fs::path& output) {
    std::vector<double> values;
    for (const Json& line : read_metrics(output))
      if (line.contains("eval_loss"))
        for (const char* name : {"eval_loss", "eval_token_accuracy", "eval_documents"})
          values.push_back(line[name].get<double>());
    return values;
  };
  for (const int64_t stage : {0, 3}) {
    run(work_ / "three", 3, stage, 6, joined(keys, {"--overwrite-output-dir"}));
    EXPECT_LE(farthest(losses(work_ / "alone"), losses(work_ / "three")), 1e-5);
    EXPECT_EQ(evaluations(work_ / "alone").size(), 6u);
    EXPECT_LE(farthest(evaluations(work_ / "alone"), evaluations(work_ / "three")), 1e-5);
  }
  // Their rows are stretches of a batch's, and so are documents.
  for (const Mesh& mesh : {Mesh{2, 1, 2, 0, 1}, Mesh{4, 2, 1, 1, 1}, Mesh{8, 2, 2, 3, 1}, Mesh{3, 1, 1, 0, 1, 1, 3},
                           Mesh{4, 2, 1, 0, 1, 1, 2}}) {
    run(work_ / "split", mesh.ranks, mesh.stage, 6 * mesh.together(),
        joined(joined(keys, mesh.keys()), {"--overwrite-output-dir"}));
    EXPECT_LE(farthest(losses(work_ / "alone"), losses(work_ / "split")), 1e-5) << mesh.name();
    EXPECT_LE(farthest(evaluations(work_ / "alone"), evaluations(work_ / "split")), 1e-5) << mesh.name();
  }
}

std::vector<std::string> random_recipe(std::mt19937& random, bool experts) {
  const auto pick = [&](std::vector<std::string> values) { return values[random() % values.size()]; };
  const int64_t stage = static_cast<int64_t>(random() % 4);
  const bool splits_products = random() % 3 == 0 && !experts, splits_sequences = random() % 3 == 0;
  const bool splits_layers = random() % 3 == 0;
  const bool splits_thrice = splits_products + splits_sequences + splits_layers + experts > 2;
  const bool splits = splits_products || splits_sequences || splits_layers || experts;
  std::vector<std::string> optimizers = {"adamw_torch", "adamw_bf16_states", "lion_32bit", "sgd"};
  if (!splits_products) optimizers.emplace_back("adamw_8bit");
  std::vector<std::string> words = {
      "--max-steps",     "2",
      "--num-processes", splits_thrice ? "8" : splits ? pick({"4", "8"}) : pick({"2", "3", "4"}),
      "--zero-stage",    std::to_string(stage),
      "--accum",         pick({"1", "2", "5"}),
      "--batch",         splits_sequences ? "1" : pick({"1", "2"}),
      "--seq",           pick({"32", "64", "100"}),
      "--threads",       "1",
      "--optim",         pick(optimizers),
      "--tp-size",       splits_products ? "2" : "1",
      "--cp-size",       splits_sequences ? "2" : "1",
      "--pp-size",       splits_layers ? "2" : "1",
      "--ep-size",       experts ? "2" : "1"};
  const auto sometimes = [&](unsigned of, std::vector<std::string> more) {
    if (random() % of == 0) words.insert(words.end(), more.begin(), more.end());
  };
  const std::string method = pick({"full", "lora", "qlora"});
  sometimes(1, {"--method", method});
  if (splits_layers && words[7] == "2") sometimes(2, {"--vpp-size", "2"});
  if (stage > 0 && (words[3] == "4" || words[3] == "8")) sometimes(experts ? 100 : 2, {"--dp-replicate-size", "2"});
  sometimes(2, {pick({"--bf16", "--fp16"})});
  sometimes(2, {"--gradient-checkpointing"});
  if (!splits_layers) sometimes(6, {"--offload-activations", "disk"});
  if (method != "full") sometimes(3, {"--lora-target-modules", experts ? "q_proj,o_proj" : "all-linear"});
  if (method == "lora" && stage < 3 && !splits_products) sometimes(4, {"--use-dora"});
  if (method == "lora" && !splits_layers && !experts)
    sometimes(6, {"--lora-target-modules", "q_proj", "--modules-to-save", "embed_tokens"});
  return words;
}

// Every rank's own count, and that it ran within the plan and 16 MiB of data.
TEST_F(Ranks, each_measures_what_was_planned_over_ninety_recipes) {
  std::mt19937 random(31);
  constexpr int64_t kMebibyte = int64_t{1} << 20;
  Json of_experts = mixture_config();
  of_experts["num_hidden_layers"] = 4;  // a layer for each of two chunks of two stages
  const Workspace plain(Json{{"num_hidden_layers", 4}}), tied(Json{{"num_hidden_layers", 5}, {"tie_word_embeddings", true}}),
      mixture(of_experts);
  for (const fs::path& data : {plain.data(), tied.data(), mixture.data()})
    put(data, text_rows(600, 1));  // for two whole steps
  for (int i = 0; i < snug::testing::drawn(90); ++i) {
    const bool experts = i % 4 == 3;
    std::vector<std::string> keys =
        joined(random_recipe(random, experts), {"--cp-comm-type", i % 3 == 0 ? "all_gather" : "p2p"});
    const Workspace& work = experts ? mixture : i % 4 == 2 ? tied : plain;
    const fs::path output = work / "run";
    const std::string shown = fmt::format("{}", fmt::join(keys, " "));
    const ProcessResult planned =
        run_program(joined(joined({"plan", work.model().string(), "--runtime", "snug", "--json"}, keys), {}));
    ASSERT_EQ(planned.exit_code, 0) << shown << "\n" << planned.error;
    const Json plan = Json::parse(planned.output);
    const Json& stages = plan["ranks"];
    const int64_t peak = plan["peak_bytes"], of_stage = stages[0]["count"];
    const int64_t ranks = of_stage * static_cast<int64_t>(stages.size());
    ProcessOptions limited;
    if (!snug::testing::kSanitized) limited.limits[RLIMIT_DATA] = static_cast<rlim_t>(peak + 16 * kMebibyte);
    const ProcessResult result =
        run_program(work.train(output, joined(keys, {"--overwrite-output-dir", "--save-steps", "1"})), limited);
    ASSERT_EQ(result.exit_code, 0) << shown << "\n" << result.error;
    const Json summary = summary_of(output);
    ASSERT_EQ(summary["rank_peak_bytes"].size(), static_cast<size_t>(ranks)) << shown;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const int64_t measured = summary["rank_peak_bytes"][static_cast<size_t>(rank)];
      const int64_t own = stages[static_cast<size_t>(rank / of_stage)]["peak_bytes"];
      if (!snug::testing::kSanitized) {
        EXPECT_LE(measured, own) << shown << ", rank " << rank;
        EXPECT_GE(measured, own - 6 * kMebibyte) << shown << ", rank " << rank;
      }
    }
    for (size_t stage = 0; stage < stages.size(); ++stage)
      EXPECT_EQ(summary["rank_sent_bytes"][stage * static_cast<size_t>(of_stage)].get<int64_t>(),
                2 * stages[stage]["sent_bytes"].get<int64_t>())
          << shown << ", stage " << stage;
    if (stages.size() > 1) continue;
    const int64_t sum = std::accumulate(summary["rank_sent_bytes"].begin(), summary["rank_sent_bytes"].end(), int64_t{0},
                                        [](int64_t a, const Json& b) { return a + b.get<int64_t>(); });
    EXPECT_NEAR(static_cast<double>(sum) / static_cast<double>(ranks), static_cast<double>(summary["rank_sent_bytes"][0]),
                64.0 * 2)
        << shown;
  }
}

TEST_F(Ranks, that_split_go_on_in_another_mesh_or_alone) {
  constexpr int kSteps = snug::testing::few_of(10);
  const std::vector<std::string> common = steps_and_saves(kSteps);
  for (const Kind& kind : std::span(kKinds).first(2)) {
    const std::vector<std::string> keys = joined(kind.keys, common);
    const fs::path truth = work_ / kind.name;
    const Mesh first{8, 2, 2, 3, 1};
    run(truth, first.ranks, first.stage, 8 * 4, joined(keys, first.keys()));
    for (const Mesh& mesh : {first, Mesh{4, 2, 1, 1, 1}, Mesh{2, 1, 2, 0, 1}, Mesh{3, 1, 1, 0, 1, 1, 3},
                             Mesh{4, 1, 1, 1, 1, 1, 2}, Mesh{1, 1, 1, 0, 1}}) {
      const fs::path output = work_ / fmt::format("{}-{}", kind.name, mesh.name());
      fs::copy(truth, output, fs::copy_options::recursive);
      fs::remove_all(output / checkpoint(kSteps));
      run(output, mesh.ranks, mesh.stage, 8 * mesh.together(),
          joined(joined(keys, mesh.keys()), {"--resume-from-checkpoint", "true"}));
      EXPECT_LE(farthest(losses(truth), losses(output)), 1e-5) << output;
      EXPECT_LE(farthest(truth / kind.weights, output / kind.weights), 1e-4) << output;
      if (mesh.name() != first.name()) continue;
      EXPECT_TRUE(contents(truth / kind.weights) == contents(output / kind.weights)) << "the same world, the same bits";
    }
  }
}

TEST_F(Ranks, go_on_with_half_as_many_or_alone) {
  constexpr int kSteps = snug::testing::few_of(10);
  const std::vector<std::string> keys = joined({"--method", "full"}, steps_and_saves(kSteps));
  const fs::path truth = work_ / "truth";
  run(truth, 4, 3, 8, keys);
  for (const int64_t ranks : {2, 1}) {
    const fs::path output = work_ / fmt::format("with-{}", ranks);
    fs::copy(truth, output, fs::copy_options::recursive);
    fs::remove_all(output / checkpoint(kSteps));
    run(output, ranks, ranks == 2 ? 1 : 0, 8, joined(keys, {"--resume-from-checkpoint", "true"}));
    EXPECT_LE(farthest(losses(truth), losses(output)), 1e-5) << ranks;
    EXPECT_LE(farthest(truth / "model.safetensors", output / "model.safetensors"), 1e-4) << ranks;
  }
}

TEST_F(Ranks, are_asked_for_by_the_words_of_other_trainers) {
  put(work_ / "zero2.json", R"({"zero_optimization": {"stage": 2, "overlap_comm": false}})");
  const auto planned = [&](const std::vector<std::string>& more) {
    const ProcessResult result =
        run_program(joined({"plan", work_.model().string(), "--runtime", "snug", "--method", "full", "--json"}, more));
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return Json::parse(result.output)["ranks"][0];
  };
  const auto own = [&](int64_t stage, const char* overlaps = "true") {
    return planned({"--num-processes", "4", "--zero-stage", std::to_string(stage), "--overlap-comm", overlaps});
  };
  EXPECT_EQ(planned({"--gpus", "4"}), own(0));
  EXPECT_EQ(planned({"--gpus", "4", "--fsdp"}), own(3));
  EXPECT_EQ(planned({"--gpus", "4", "--deepspeed", (work_ / "zero2.json").string()}), own(2, "false"));
  EXPECT_EQ(planned({"--gpus", "8", "--fsdp", "--num-processes", "4", "--zero-stage", "1"}), own(1));
  EXPECT_NE(own(1), own(2));
}

// As on two machines: told that each is alone on its own, they meet through MPI. The same ring, so the same bits.
TEST_F(Ranks, that_meet_through_mpi_learn_the_same_bits) {
  if (!has_mpi()) GTEST_SKIP() << kNoMpi;
  const std::vector<std::string> keys = {"--method", "full", "--max-steps", "4", "--lr", "1e-3", "--save-steps", "2"};
  run(work_ / "here", 2, 3, 4, keys);
  const ProcessOptions options = mpirun();
  const std::vector<std::string>& launch = kOverMpi;
  const ProcessResult result = run_program(joined(launch, words(work_ / "there", 2, 3, 4, keys)), options);
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_TRUE(contents(work_ / "here" / "model.safetensors") == contents(work_ / "there" / "model.safetensors"));
  EXPECT_EQ(step_lines(work_ / "here"), step_lines(work_ / "there"));
  const Json summary = summary_of(work_ / "there");
  EXPECT_EQ(summary["rank_sent_bytes"], summary_of(work_ / "here")["rank_sent_bytes"]);
  for (const Json& peak : summary["rank_peak_bytes"])
    EXPECT_LE(peak.get<int64_t>(), summary["planned_peak_bytes"].get<int64_t>());

  // Stages of a pipeline, whose lanes say things at the same time.
  const std::vector<std::string> staged = joined(keys, {"--pp-size", "2", "--zero-stage", "0"});
  run(work_ / "stages-here", 2, 0, 8, staged);
  const ProcessResult apart = run_program(joined(launch, words(work_ / "stages-there", 2, 0, 8, staged)), options);
  ASSERT_EQ(apart.exit_code, 0) << apart.error;
  EXPECT_TRUE(contents(work_ / "stages-here" / "model.safetensors") ==
              contents(work_ / "stages-there" / "model.safetensors"));

  // One that cannot go on: the launcher ends the other.
  put(work_ / "broken.jsonl", "{\"text\": \n");
  std::vector<std::string> wrong = joined(launch, words(work_ / "wrong", 2, 3, 4, keys));
  *(std::find(wrong.begin(), wrong.end(), "--data") + 1) = (work_ / "broken.jsonl").string();
  const ProcessResult told = run_program(wrong, options);
  EXPECT_EQ(told.exit_code, 1);
  EXPECT_NE(told.error.find("broken.jsonl"), std::string::npos) << told.error;
}

// Two processes as torchrun starts them, with the variables that it sets.
TEST_F(Ranks, started_by_a_launcher_meet_and_train) {
  const fs::path output = work_ / "launched";
  const auto start = [&](int rank, const std::string& seed) {
    ProcessOptions options;
    options.environment = {{"RANK", std::to_string(rank)},
                           {"WORLD_SIZE", "2"},
                           {"LOCAL_WORLD_SIZE", "2"},
                           {"MASTER_PORT", std::to_string(getpid())}};
    return std::make_unique<Process>(work_.train(output, {"--method", "full", "--seq", "32", "--max-steps", "3",
                                                          "--zero-stage", "2", "--seed", seed, "--overwrite-output-dir"}),
                                     options);
  };
  auto first = start(0, "1"), second = start(1, "1");
  EXPECT_EQ(second->finish().exit_code, 0);
  EXPECT_EQ(first->finish().exit_code, 0);
  EXPECT_EQ(summary_of(output)["rank_peak_bytes"].size(), 2u);

  first = start(0, "1");
  second = start(1, "2");
  const ProcessResult quiet = second->finish(), told = first->finish();
  EXPECT_EQ(told.exit_code, 1);
  EXPECT_NE(told.error.find("rank 1 runs another program than rank 0"), std::string::npos) << told.error;
  EXPECT_EQ(quiet.exit_code, 1);
  EXPECT_EQ(quiet.error.find("snug: "), std::string::npos) << quiet.error;
}

}  // namespace

}  // namespace snug::cli_tests
