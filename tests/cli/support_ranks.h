#pragma once
// Runs of several processes: their meshes, what they are compared by, and how they are started.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "cli/support_workspace.h"
#include "formats/checkpoint.h"

namespace snug::cli_tests {

namespace fs = std::filesystem;

inline std::vector<double> losses(const fs::path& output) {
  std::vector<double> values;
  for (const Json& line : read_metrics(output))
    if (line.contains("learning_rate")) values.push_back(line["loss"].get<double>());
  return values;
}

inline Json summary_of(const fs::path& output) { return read_metrics(output).back()["summary"]; }

// |a - b| / |a| of every tensor, the largest.
inline double farthest(const fs::path& a, const fs::path& b) {
  const Checkpoint first(a), second(b);
  double most = first.tensors().size() == second.tensors().size() ? 0 : INFINITY;
  for (const TensorEntry& entry : first.tensors()) {
    const auto count = static_cast<size_t>(entry.elements());
    std::vector<float> x(count), y(count);
    first.read(entry, 0, std::as_writable_bytes(std::span(x)));
    second.read(second.at(entry.name), 0, std::as_writable_bytes(std::span(y)));
    double norm = 0, distance = 0;
    for (size_t i = 0; i < count; ++i) {
      norm += double{x[i]} * x[i];
      distance += std::pow(double{x[i]} - y[i], 2);
    }
    most = std::max(most, std::sqrt(distance / std::max(norm, 1e-30)));
  }
  return most;
}

inline double farthest(const std::vector<double>& a, const std::vector<double>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// So many steps, with a checkpoint half-way.
inline std::vector<std::string> steps_and_saves(int steps) {
  return {"--max-steps", std::to_string(steps), "--lr", "1e-4", "--save-steps", std::to_string(steps / 2)};
}
inline std::string checkpoint(int step) { return "checkpoint-" + std::to_string(step); }

struct Kind {
  const char* name;
  std::vector<std::string> keys;
  const char* weights;
};
inline const Kind kKinds[] = {
    {"full", {"--method", "full"}, "model.safetensors"},
    {"lora", {"--method", "lora", "--lora-target-modules", "all-linear"}, "adapter_model.safetensors"},
    {"qlora", {"--method", "qlora", "--lora-target-modules", "all-linear"}, "adapter_model.safetensors"}};

// Ranks that split what one micro-batch takes, alone and beside those that have batches of their own.
struct Mesh {
  int64_t ranks, tensor, context, stage, replicas, expert = 1, pipeline = 1, chunks = 1;
  bool ring = false;  // ranks that split sequences pass keys and values round
  // Processes that work on one micro-batch.
  int64_t together() const { return tensor * context * pipeline; }
  std::string name() const {
    return fmt::format("{}-tp{}-cp{}{}-ep{}-pp{}x{}-z{}-r{}", ranks, tensor, context, ring ? "-p2p" : "", expert, pipeline,
                       chunks, stage, replicas);
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> words;
    if (ring) words = {"--cp-comm-type", "p2p"};
    for (const auto& [key, size] : {std::pair{"--tp-size", tensor},
                                    {"--cp-size", context},
                                    {"--ep-size", expert},
                                    {"--pp-size", pipeline},
                                    {"--vpp-size", chunks},
                                    {"--dp-replicate-size", replicas}})
      words.insert(words.end(), {key, std::to_string(size)});
    return words;
  }
};

inline Json mixture_config() {
  return {{"architectures", {"MixtralForCausalLM"}},
          {"model_type", "mixtral"},
          {"hidden_size", 64},
          {"intermediate_size", 96},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"num_local_experts", 8},
          {"num_experts_per_tok", 2},
          {"vocab_size", 257},
          {"max_position_embeddings", 256},
          {"initializer_range", 0.1},
          {"tie_word_embeddings", false}};
}

inline constexpr const char* kMpirun = "/usr/bin/mpirun";
inline constexpr const char* kNoMpi = "SKIPPED: Open MPI is not installed, or this build has no module over it";
// Two ranks that take each other for ranks of other machines.
inline const std::vector<std::string> kOverMpi = {
    "--oversubscribe", "--bind-to", "none", "-n", "2", "env", "OMPI_COMM_WORLD_LOCAL_SIZE=1", SNUG_BINARY_DIR "/snug"};

inline bool has_mpi() { return fs::exists(kMpirun) && fs::exists(SNUG_BINARY_DIR "/modules/snug_mpi.so"); }

inline ProcessOptions mpirun() {
  ProcessOptions options{.program = kMpirun};
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"}) options.environment[name] = "1";
  return options;
}

class Ranks : public ::testing::Test {
 protected:
  // `together`: micro-batches of a step, of all ranks.
  std::vector<std::string> words(const fs::path& output, int64_t ranks, int64_t stage, int64_t together,
                                 const std::vector<std::string>& more) const {
    return words(work_, output, ranks, stage, together, more);
  }
  static std::vector<std::string> words(const Workspace& work, const fs::path& output, int64_t ranks, int64_t stage,
                                        int64_t together, const std::vector<std::string>& more) {
    return work.train(output,
                      joined({"--threads", "1", "--seq", "32", "--batch", "1", "--accum", std::to_string(together / ranks),
                              "--num-processes", std::to_string(ranks), "--zero-stage", std::to_string(stage)},
                             more));
  }

  ProcessResult run(const fs::path& output, int64_t ranks, int64_t stage, int64_t together,
                    const std::vector<std::string>& more) const {
    const ProcessResult result = run_program(words(output, ranks, stage, together, more));
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return result;
  }

  // Runs of a kind on these meshes against one of one process, with the same effective batch.
  static void compare(const Workspace& work, const Kind& kind, std::span<const Mesh> meshes) {
    constexpr int64_t kTogether = 8;
    constexpr int kSteps = snug::testing::few_of(20);
    const auto go = [&](const fs::path& output, const Mesh& mesh) {
      const ProcessResult result = run_program(words(work, output, mesh.ranks, mesh.stage, kTogether * mesh.together(),
                                                     joined(joined(kind.keys, mesh.keys()), steps_and_saves(kSteps))));
      EXPECT_EQ(result.exit_code, 0) << result.error;
    };
    const fs::path alone = work / kind.name, states = fs::path(checkpoint(kSteps)) / "optimizer.safetensors";
    go(alone, {1, 1, 1, 0, 1});
    for (const Mesh& mesh : snug::testing::thinned(meshes, 3)) {
      const fs::path output = work / fmt::format("{}-{}", kind.name, mesh.name());
      go(output, mesh);
      EXPECT_LE(farthest(losses(alone), losses(output)), 1e-5) << output;
      EXPECT_LE(farthest(alone / kind.weights, output / kind.weights), 1e-4) << output;
      EXPECT_LE(farthest(alone / states, output / states), 1e-3) << output;
      fs::remove_all(output);
    }
  }

  Workspace work_;
};

}  // namespace snug::cli_tests
