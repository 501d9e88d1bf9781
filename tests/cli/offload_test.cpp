// Activations and weights on disk: the bits of a run that has them in memory, in less of it, and as much traffic as planned.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "cli/support_workspace.h"
#include "families.h"

namespace snug::cli_tests {

namespace {

const std::vector<std::vector<std::string>> kPlaces = {
    {"--offload-activations", "disk"},
    {"--offload-weights", "disk"},
    {"--offload-activations", "disk", "--offload-weights", "disk", "--optim", "paged_adamw_32bit"}};

std::vector<std::string> keys_of(const std::string& method) {
  std::vector<std::string> keys = {"--method", method, "--seq", "64", "--batch", "2", "--accum", "2", "--lr", "2e-3"};
  if (method != "full") keys = joined(keys, {"--lora-target-modules", "all-linear"});
  return keys;
}

void expect_same_run(const Workspace& work, const std::vector<std::string>& keys, const std::vector<std::string>& more,
                     const std::string& weights) {
  for (const char* run : {"near", "far"}) {
    const bool far = run[0] == 'f';
    const ProcessResult result = run_program(
        work.train(work / run, joined(joined(keys, {"--overwrite-output-dir"}), far ? more : std::vector<std::string>{})));
    ASSERT_EQ(result.exit_code, 0) << result.error;
  }
  EXPECT_EQ(step_lines(work / "near"), step_lines(work / "far"));
  EXPECT_TRUE(contents(work / "near" / weights) == contents(work / "far" / weights));
}

TEST(Offload, every_method_gives_the_same_bits) {
  const Workspace work(Json{{"num_hidden_layers", 5}});
  for (const char* method : {"full", "lora", "qlora"})
    for (const char* checkpointing : {"false", "true"})
      for (const std::vector<std::string>& more : kPlaces) {
        const bool full = std::string(method) == "full";
        std::vector<std::string> keys =
            joined(keys_of(method), {"--max-steps", "4", "--gradient-checkpointing", checkpointing});
        if (std::string(checkpointing) == "true") keys = joined(keys, {"--bf16", "--checkpoint-layers", "1,2"});
        std::vector<std::string> away = more;
        if (full) away = joined(away, {"--offload-gradients", "disk"});
        SCOPED_TRACE(std::string(method) + " " + checkpointing + " " + more[0] + (more.size() > 2 ? " and all" : ""));
        expect_same_run(work, keys, away, full ? "model.safetensors" : "adapter_model.safetensors");
      }
}

TEST(Offload, every_family_gives_the_same_bits) {
  for (const auto& [name, config] : testing::thinned(test::families(300), 2)) {
    SCOPED_TRACE(name);
    const Workspace work(config);
    expect_same_run(work, joined(keys_of("lora"), {"--max-steps", "2", "--bf16"}),
                    {"--offload-activations", "disk", "--offload-weights", "disk"}, "adapter_model.safetensors");
  }
}

// To the byte by the executor's count; and what the kernel counts between two runs that differ by four steps is four times
// as much. It counts pages of libraries too that went out of the cache in between, as they do beside other programs: so the
// two runs are made up to three times.
TEST(Offload, moves_what_was_planned) {
  const Workspace work(Json{{"num_hidden_layers", 6}, {"hidden_size", 128}, {"intermediate_size", 384}});
  std::vector<std::vector<std::string>> all;
  for (const std::vector<std::string>& more : kPlaces) all.push_back(joined(keys_of("qlora"), more));
  all.push_back(joined(joined(keys_of("full"), kPlaces.back()), {"--offload-gradients", "disk"}));
  for (const std::vector<std::string>& keys : all) {
    const ProcessResult plan = run_program(joined({"plan", work.model().string(), "--json"}, keys));
    ASSERT_EQ(plan.exit_code, 0) << plan.error;
    const Json homes = Json::parse(plan.output)["homes"];
    const auto planned = homes["fetched_a_step"].get<int64_t>();
    EXPECT_GT(planned, 0);
    const auto read_by = [&](int64_t steps) {
      const ProcessResult run = run_program(
          work.train(work / "out", joined(keys, {"--max-steps", std::to_string(steps), "--overwrite-output-dir"})));
      EXPECT_EQ(run.exit_code, 0) << run.error;
      const Json summary = read_metrics(work / "out").back()["summary"];
      EXPECT_EQ(summary["fetched_bytes"].get<int64_t>(), steps * planned);
      EXPECT_EQ(summary["sent_bytes"].get<int64_t>(), steps * homes["sent_a_step"].get<int64_t>());
      return run.disk_read;
    };
    read_by(2);  // leaves the cache as the others find it
    int64_t beside = 0;
    constexpr int64_t kBeside = 256 << 10;  // a page of a directory that was not in the cache may be on either side
    for (int attempt = 0; attempt < 3; ++attempt) {
      const int64_t few = read_by(2), more = read_by(6);
      if (more == 0) break;  // a disk that is memory is not counted
      beside = more - few - 4 * planned;
      if (std::abs(beside) <= kBeside) break;
    }
    EXPECT_LE(std::abs(beside), kBeside) << keys[1] << keys.size();
  }
}

// What `snug plan --max-memory` prints is what `snug train --max-memory` does.
TEST(Offload, a_map_runs_as_it_is_printed) {
  const Workspace work(Json{{"num_hidden_layers", 6}, {"hidden_size", 256}, {"intermediate_size", 1024}});
  for (const char* method : {"lora", "full"}) {
    const std::vector<std::string> keys = keys_of(method);
    const auto planned = [&](const std::vector<std::string>& more) {
      const ProcessResult plan =
          run_program(joined(joined({"plan", work.model().string(), "--threads", "2", "--json"}, keys), more));
      EXPECT_EQ(plan.exit_code, 0) << plan.error;
      return Json::parse(plan.output);
    };
    std::vector<std::string> away = {"--offload-weights", "disk"};
    if (keys[1] == "full") away = joined(away, {"--offload-gradients", "disk", "--offload-optimizer", "disk"});
    const auto most = planned({})["peak_bytes"].get<int64_t>(), least = planned(away)["peak_bytes"].get<int64_t>();
    const std::string rooms = "cpu:" + std::to_string((most + least) / 2048) + "KiB,disk:1GiB";
    const Json map = planned({"--max-memory", rooms});
    const size_t blocks = keys[1] == "full" ? 6 : map["settings"]["offload_layers"].get<std::string>().size() / 2 + 1;
    EXPECT_EQ(std::ranges::count(map["device_map"], "disk"), static_cast<std::ptrdiff_t>(blocks));
    EXPECT_TRUE(blocks > 1 && blocks < (keys[1] == "full" ? 7U : 6U)) << blocks;

    const std::vector<std::string> run = joined(keys, {"--threads", "2", "--max-steps", "3", "--overwrite-output-dir"});
    for (const auto& [name, more] : {std::pair("near", std::vector<std::string>()),
                                     std::pair("map", std::vector<std::string>{"--max-memory", rooms})}) {
      const ProcessResult result = run_program(work.train(work / name, joined(run, more)));
      ASSERT_EQ(result.exit_code, 0) << result.error;
    }
    const Json summary = read_metrics(work / "map").back()["summary"];
    EXPECT_EQ(summary["planned_peak_bytes"], map["peak_bytes"]);
    const auto fetched = map["homes"]["fetched_a_step"].get<int64_t>();
    const int64_t of_block = fetched / (static_cast<int64_t>(blocks) * 4);  // forward and backward, two micro-batches
    const int64_t kept = keys[1] == "full" ? 0 : of_block * (6 - static_cast<int64_t>(blocks));  // fetched once
    EXPECT_EQ(summary["fetched_bytes"].get<int64_t>(), 3 * fetched + kept);
    EXPECT_TRUE(testing::kSanitized || summary["measured_peak_bytes"].get<int64_t>() <= map["peak_bytes"].get<int64_t>());
    EXPECT_EQ(step_lines(work / "near"), step_lines(work / "map"));
  }
}

TEST(Offload, a_map_that_cannot_run_is_refused_in_a_line) {
  const Workspace work;
  for (const char* rooms : {"0:8GiB,cpu:8GiB", "disk:8GiB", "cpu:1MiB,disk:1GiB"}) {
    const ProcessResult run = run_program(work.train(work / "out", joined(keys_of("lora"), {"--max-memory", rooms})));
    EXPECT_EQ(run.exit_code, std::string(rooms).starts_with("cpu") ? 3 : 1) << rooms << run.error;
    EXPECT_LE(std::ranges::count(run.error, '\n'), 2) << run.error;
    EXPECT_FALSE(std::filesystem::exists(work / "out"));
  }
}

}  // namespace

}  // namespace snug::cli_tests
