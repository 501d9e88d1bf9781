// snug generate as a user meets it: prompts, chats, files of prompts, what ends an answer, what is refused, and memory.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/support_workspace.h"
#include "families.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

Words generate(const Workspace& work, const Words& more) {
  return joined({"generate", work.model().string(), "--threads", "2"}, more);
}

std::vector<Json> answers(const ProcessResult& run) {
  EXPECT_EQ(run.exit_code, 0) << run.error;
  std::vector<Json> list;
  std::istringstream text(run.output);
  for (std::string line; std::getline(text, line);) list.push_back(Json::parse(line));
  return list;
}

Json answer(const Workspace& work, const Words& more) {
  const auto list = answers(run_program(generate(work, joined({"--json"}, more))));
  EXPECT_EQ(list.size(), 1U);
  return list.empty() ? Json() : list.front();
}

TEST(Generate, continues_a_prompt_greedily_and_says_what_it_did) {
  const Workspace work;
  const Json one = answer(work, {"--prompt", "the cat", "--max-new-tokens", "20"});
  EXPECT_EQ(one["prompt_tokens"], 7);
  EXPECT_LE(one["new_tokens"], 20);
  EXPECT_TRUE(one["stop_reason"] == "max_new_tokens" || one["stop_reason"] == "eos");
  if (!testing::kSanitized) {
    EXPECT_LE(one["measured_peak_bytes"], one["planned_peak_bytes"]);
  }
  EXPECT_EQ(answer(work, {"--prompt", "the cat", "--max-new-tokens", "20"})["text"], one["text"]);
  const ProcessResult plain = run_program(generate(work, {"--prompt", "the cat", "--max-new-tokens", "20"}));
  EXPECT_EQ(plain.exit_code, 0) << plain.error;
  EXPECT_EQ(plain.output, one["text"].get<std::string>() + "\n");
  EXPECT_NE(plain.error.find("fits: "), std::string::npos);
  EXPECT_NE(plain.error.find("cache of 27 tokens"), std::string::npos) << plain.error;
}

TEST(Generate, draws_by_its_seed) {
  const Workspace work;
  const Words hot = {"--prompt", "a", "--max-new-tokens", "40", "--temperature", "2", "--top-k", "0"};
  const Json one = answer(work, joined(hot, {"--seed", "1"}));
  EXPECT_EQ(answer(work, joined(hot, {"--seed", "1"}))["text"], one["text"]);
  EXPECT_NE(answer(work, joined(hot, {"--seed", "2"}))["text"], one["text"]);
  const Json cold = answer(work, {"--prompt", "a", "--max-new-tokens", "40"});
  EXPECT_EQ(answer(work, {"--prompt", "a", "--max-new-tokens", "40", "--temperature", "1", "--top-k", "1"})["text"],
            cold["text"]);
  put(work.model() / "generation_config.json", R"({"do_sample": true, "temperature": 5.0, "min_p": 0.1})");
  const ProcessResult run = run_program(generate(work, {"--prompt", "a", "--max-new-tokens", "40"}));
  EXPECT_NE(run.output, cold["text"].get<std::string>() + "\n");
  EXPECT_NE(run.error.find("asks for min_p 0.1, which is not applied"), std::string::npos) << run.error;
  EXPECT_EQ(answer(work, {"--prompt", "a", "--max-new-tokens", "40", "--temperature", "0"})["text"], cold["text"]);
}

TEST(Generate, ends_before_a_stop_string_and_at_an_end_token) {
  const Workspace work;
  const Words question = {"--prompt", "seven small boats", "--max-new-tokens", "60", "--temperature", "1.5", "--top-k", "0"};
  const auto text = answer(work, question)["text"].get<std::string>();
  ASSERT_GT(text.size(), 8U);
  size_t middle = text.size() / 2;
  while (middle < text.size() && (static_cast<unsigned char>(text[middle]) & 0xC0) == 0x80) ++middle;
  const std::string stop = text.substr(middle, 1 + text.substr(middle + 1).find_first_of(text.substr(middle + 1, 1)));
  if (static_cast<unsigned char>(stop[0]) < 0x80) {
    const Json stopped = answer(work, joined(question, {"--stop", "never this", "--stop", stop}));
    EXPECT_EQ(stopped["stop_reason"], "stop");
    EXPECT_EQ(stopped["text"], text.substr(0, text.find(stop)));
  }
  put(work.model() / "generation_config.json", [] {  // every byte ends the text
    Json ids = Json::array();
    for (int id = 0; id < 257; ++id) ids.push_back(id);
    return Json{{"eos_token_id", ids}}.dump();
  }());
  const Json ended = answer(work, question);
  EXPECT_EQ(ended["stop_reason"], "eos");
  EXPECT_EQ(ended["new_tokens"], 1);
  EXPECT_EQ(ended["text"], "");
}

TEST(Generate, the_models_positions_and_max_length_end_an_answer) {
  const Workspace work({{"max_position_embeddings", 32}, {"eos_token_id", nullptr}});
  put(work.model() / "tokenizer_config.json", "{}");
  const Json all = answer(work, {"--prompt", "0123456789"});
  EXPECT_EQ(all["stop_reason"], "max_length");
  EXPECT_EQ(all["new_tokens"], 22);
  EXPECT_EQ(answer(work, {"--prompt", "0123456789", "--max-length", "15"})["new_tokens"], 5);
}

TEST(Generate, answers_a_message_through_the_chat_template) {
  const Workspace work;
  const ProcessResult without = run_program(generate(work, {"--chat", "hello"}));
  EXPECT_EQ(without.exit_code, 1);
  EXPECT_NE(without.error.find("no chat template"), std::string::npos) << without.error;
  put(work.model() / "chat_template.jinja",
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<bot>{% endif %}");
  const Json chat = answer(work, {"--chat", "hello", "--max-new-tokens", "12"});
  const Json prompt = answer(work, {"--prompt", "<user>hello<bot>", "--max-new-tokens", "12"});
  EXPECT_EQ(chat["prompt_tokens"], 16);
  EXPECT_EQ(chat["text"], prompt["text"]);

  put(work / "rows.jsonl",
      "{\"prompt\": \"<user>hello<bot>\"}\n\n{\"messages\": [{\"role\": \"user\", \"content\": \"hello\"}]}\n{\"prompt\": "
      "\"a longer one "
      "than those before, so that it is cut in other steps\"}\n");
  const auto list =
      answers(run_program(generate(work, {"--json", "--data", (work / "rows.jsonl").string(), "--max-new-tokens", "12"})));
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0]["text"], prompt["text"]);
  EXPECT_EQ(list[1]["text"], prompt["text"]);
  put(work / "bad.jsonl", "{\"prompt\": \"a\"}\n{\"text\": \"b\"}\n");
  const ProcessResult bad = run_program(generate(work, {"--data", (work / "bad.jsonl").string()}));
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_NE(bad.error.find("bad.jsonl:2: the row has neither"), std::string::npos) << bad.error;
}

TEST(Generate, refuses_wrong_calls_in_one_line) {
  const Workspace work;
  const std::pair<Words, int> cases[] = {{{}, 2},
                                         {{"--prompt", "a", "--chat", "b"}, 2},
                                         {{"--prompt"}, 2},
                                         {{"--prompt", "a", "--temprature", "1"}, 2},
                                         {{"--prompt", "a", "--temperature", "-1"}, 1},
                                         {{"--prompt", "a", "--temperature", "nan"}, 1},
                                         {{"--prompt", "a", "--temperature", "1x"}, 1},
                                         {{"--prompt", "a", "--top-p", "0"}, 1},
                                         {{"--prompt", "a", "--top-p", "1.01"}, 1},
                                         {{"--prompt", "a", "--top-k", "-1"}, 1},
                                         {{"--prompt", "a", "--max-new-tokens", "0"}, 1},
                                         {{"--prompt", "a", "--max-new-tokens", "ten"}, 1},
                                         {{"--prompt", "abcdef", "--max-length", "6"}, 1},
                                         {{"--prompt", std::string(256, 'a')}, 1},
                                         {{"--prompt", ""}, 1},
                                         {{"--data", "/no/such/file"}, 1},
                                         {{"--prompt", "a", "--adapter", "/no/such"}, 1}};
  for (const auto& [words, code] : cases) {
    const ProcessResult run = run_program(generate(work, words));
    EXPECT_EQ(run.exit_code, code) << (words.empty() ? "" : words.back()) << ": " << run.error;
    EXPECT_EQ(run.output, "");
    EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 1) << run.error;
  }
  EXPECT_EQ(run_program({"generate"}).exit_code, 2);
  EXPECT_EQ(run_program({"generate", "meta-llama/Llama-3.1-8B", "--prompt", "a"}).exit_code, 1);
  const ProcessResult help = run_program({"generate", "--help"});
  for (const char* flag : {"--prompt", "--chat", "--data", "--adapter", "--max-new-tokens", "--temperature", "--top-p",
                           "--top-k", "--seed", "--stop", "--json", "--max-length", "--memory"})
    EXPECT_NE(help.output.find(flag), std::string::npos) << flag;
}

TEST(Generate, too_little_memory_is_refused_with_the_length_that_fits) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer's memory is not planned";
  const Workspace work({{"max_position_embeddings", 65536}, {"num_key_value_heads", 4}, {"hidden_size", 128}});
  const Words question = {"--prompt", "a", "--max-new-tokens", "20000", "--bf16", "false"};
  const auto first = answer(work, {"--prompt", "a", "--max-new-tokens", "1"})["text"];
  const Words ending = {"--stop", first.get<std::string>(), "--max-new-tokens", "20000"};
  const auto peak = answer(work, joined({"--prompt", "a"}, ending))["planned_peak_bytes"].get<int64_t>();
  const Words budget = {"--memory", fmt::format("{}B", peak - (20 << 20))};
  const ProcessResult refused = run_program(generate(work, joined(question, budget)));
  EXPECT_EQ(refused.exit_code, 3) << refused.error;
  EXPECT_EQ(refused.output, "");
  constexpr std::string_view kAdvice = "smallest change that fits: --max-length ";
  const size_t at = refused.error.find(kAdvice);
  ASSERT_NE(at, std::string::npos) << refused.error;
  const std::string length = std::to_string(std::stoll(refused.error.substr(at + kAdvice.size())));
  const ProcessResult again =
      run_program(generate(work, joined(joined({"--prompt", "a", "--max-length", length}, ending), budget)));
  EXPECT_EQ(again.exit_code, 0) << again.error;
  const std::string longer = std::to_string(std::stoll(length) + 200);
  EXPECT_EQ(run_program(generate(work, joined(joined({"--prompt", "a", "--max-length", longer}, ending), budget))).exit_code,
            3);
  const ProcessResult never = run_program(generate(work, {"--prompt", "a", "--memory", "1MiB", "--bf16"}));
  EXPECT_EQ(never.exit_code, 3);
  EXPECT_NE(never.error.find("no length fits"), std::string::npos) << never.error;
}

TEST(Generate, uses_the_adapters_that_were_trained) {
  const Workspace work;
  for (const char* name : {"one", "two"}) {
    const ProcessResult trained = run_program(
        work.train(work / name, {"--method", "lora", "--lora-r", *name == 'o' ? "4" : "3", "--lr", "0.05", "--seq", "64",
                                 "--max-steps", "6", "--save-steps", "0", "--seed", *name == 'o' ? "1" : "2"}));
    ASSERT_EQ(trained.exit_code, 0) << trained.error;
  }
  const Words question = {"--prompt", "the cat sat on", "--max-new-tokens", "30", "--temperature", "1", "--top-k", "0"};
  const Words one = {"--adapter", (work / "one").string()}, two = {"--adapter", (work / "two").string()};
  const auto bare = answer(work, question)["text"], with_one = answer(work, joined(question, one))["text"];
  EXPECT_NE(with_one, bare);
  const Json both = answer(work, joined(joined(question, one), two));
  EXPECT_NE(both["text"], with_one);
  EXPECT_EQ(both["text"], answer(work, joined(joined(question, two), one))["text"]);
  const ProcessResult itself = run_program(joined({"generate", (work / "one").string(), "--json"}, question));
  ASSERT_EQ(itself.exit_code, 0) << itself.error;
  EXPECT_EQ(Json::parse(itself.output)["text"], with_one) << "the adapter names its base";
  if (!testing::kSanitized) {
    EXPECT_LE(both["measured_peak_bytes"], both["planned_peak_bytes"]);
  }
}

TEST(GenerateMemory, measured_is_never_above_planned) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer's memory is not planned";
  constexpr int64_t kClose = int64_t{8} << 20;  // what libraries may take and here do not; it does not grow with the model
  auto families = test::families(20011);
  families.emplace_back(
      "llama",
      Json{{"hidden_size", 256}, {"intermediate_size", 704}, {"vocab_size", 32003}, {"max_position_embeddings", 4096}});
  for (const auto& [name, config] : families) {
    const Workspace work(config);
    for (const Words& keys : {Words{"--bf16", "false"}, Words{"--bf16"}, Words{"--bf16", "--threads", "1"},
                              Words{"--temperature", "1", "--top-p", "0.9", "--bf16"}}) {
      const Json one = answer(work, joined({"--prompt", std::string(301, 'x'), "--max-new-tokens", "20"}, keys));
      if (one.is_null()) continue;
      EXPECT_LE(one["measured_peak_bytes"], one["planned_peak_bytes"]) << name << " " << keys.back();
      EXPECT_LE(one["planned_peak_bytes"].get<int64_t>() - one["measured_peak_bytes"].get<int64_t>(), kClose) << name;
    }
  }
}

TEST(GenerateMemory, nothing_large_is_allocated_between_the_first_answer_and_the_last) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer has an allocator of its own";
  for (const auto& [name, config] : test::families(20011)) {
    const Workspace work(config);
    for (const Words& keys : {Words{"--bf16", "false"}, Words{"--bf16", "--temperature", "1", "--top-p", "0.9"}}) {
      ProcessOptions options;
      options.environment = {{"LD_PRELOAD", SNUG_COUNT_ALLOCATIONS},
                             {"SNUG_COUNT_FILE", (work / "count").string()},
                             {"SNUG_COUNT_STREAM", "1"},
                             {"SNUG_COUNT_FROM", std::to_string(size_t{64} << 10)}};
      // Three answers, a line each: between the first line and the last all of two answers lies, prompts included.
      std::string rows;
      for (const char* prompt :
           {"seven", "a prompt that is cut into steps of more than one size, and so meets them all", "b"})
        rows += Json{{"prompt", prompt}}.dump() + "\n";
      put(work / "rows.jsonl", rows);
      const ProcessResult run = run_program(
          generate(work, joined({"--json", "--data", (work / "rows.jsonl").string(), "--max-new-tokens", "40"}, keys)),
          options);
      ASSERT_EQ(run.exit_code, 0) << name << run.error;
      std::istringstream text(contents(work / "count"));
      int lines = 0, requests = 0;
      size_t largest = 0;
      text >> lines >> requests >> largest;
      EXPECT_GE(lines, 3) << name;
      EXPECT_EQ(requests, 0) << name << ": the largest has " << largest << " bytes";
    }
  }
}

}  // namespace

}  // namespace snug::cli_tests
