// Questions asked without a terminal: what is thrown becomes text and an exit code, whoever asks at the same time.

#include <gtest/gtest.h>

#include <thread>

#include "ask/answers.h"
#include "ask/options.h"

namespace snug {

namespace {

Reply asked(const std::vector<std::string>& words) { return ask(words); }

TEST(Ask, what_is_wrong_is_told_in_one_line_with_its_exit_code) {
  const struct {
    std::vector<std::string> words;
    int code;
    const char* says;
  } kWrong[] = {{{}, 2, "what is asked is plan, fit"},
                {{"train", "x"}, 2, "what is asked is plan, fit"},
                {{"plan"}, 2, "which model?"},
                {{"plan", "qwen2.5-7b", "--jsn"}, 2, "did you mean --json?"},
                {{"plan", "no-such-model"}, 1, "no-such-model"},
                {{"gpus", "no such card"}, 1, "nearest"},
                {{"explain", "/dev/null"}, 1, "/dev/null: the file is empty"}};
  for (const auto& wrong : kWrong) {
    const Reply reply = asked(wrong.words);
    EXPECT_EQ(reply.exit_code, wrong.code) << wrong.says;
    EXPECT_EQ(reply.output, "");
    EXPECT_NE(reply.messages.find(wrong.says), std::string::npos) << reply.messages;
    EXPECT_EQ(reply.messages.find('\n'), reply.messages.size() - 1) << reply.messages;
  }
}

TEST(Ask, rows_of_a_file_are_the_programs_to_count) {
  const Reply reply = asked({"plan", SNUG_SOURCE_DIR "/demo/model", "--data", "rows.jsonl", "--count-data"});
  EXPECT_EQ(reply.exit_code, 1);
  EXPECT_NE(reply.messages.find("--examples N --example-tokens M"), std::string::npos) << reply.messages;
}

TEST(Ask, several_threads_get_what_one_gets) {
  const std::vector<std::string> words{"plan", "qwen2.5-7b", "--method", "lora", "--gpu", "RTX 4090", "--json"};
  const Reply alone = asked(words);
  EXPECT_NE(alone.output.find("peak_bytes"), std::string::npos) << alone.messages;
  std::vector<Reply> replies(4);
  std::vector<std::thread> threads;
  for (Reply& reply : replies) threads.emplace_back([&] { reply = asked(words); });
  for (std::thread& thread : threads) thread.join();
  for (const Reply& reply : replies) EXPECT_EQ(reply.output, alone.output);
}

}  // namespace

}  // namespace snug
