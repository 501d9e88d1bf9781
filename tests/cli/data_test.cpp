// snug data: the rows as training sees them.

#include <gtest/gtest.h>

#include "cli/support_workspace.h"

namespace snug::cli_tests {

namespace {

// The workspace's tokenizer has a token for each byte.
class Shown : public ::testing::Test {
 protected:
  ProcessResult shown(const std::string& rows, const std::vector<std::string>& more = {}) {
    put(work_ / "rows.jsonl", rows);
    return run_program(joined({"data", (work_ / "rows.jsonl").string(), work_.outline().string()}, more));
  }

  Workspace work_;
};

TEST_F(Shown, what_is_learned_stands_between_marks) {
  const ProcessResult pair = shown(R"({"prompt": "Who? ", "completion": "I."})");
  EXPECT_EQ(pair.exit_code, 0) << pair.error;
  EXPECT_TRUE(pair.output.starts_with("prompt/completion rows; learned is what is between ⟦ and ⟧\n")) << pair.output;
  EXPECT_NE(pair.output.find("rows.jsonl:1: "), std::string::npos) << pair.output;
  EXPECT_NE(pair.output.find("Who? ⟦I."), std::string::npos) << pair.output;
  const ProcessResult all = shown(R"({"prompt": "Who? ", "completion": "I."})", {"--completion-only-loss", "false"});
  EXPECT_NE(all.output.find("Who? I."), std::string::npos) << all.output;
  const ProcessResult chat = shown(
      R"({"messages": [{"role": "user", "content": "Hä?"}, {"role": "assistant", "content": "Jä."}], "system": "Be brief."})",
      {"--chat-template", "chatml"});
  EXPECT_EQ(chat.exit_code, 0) << chat.error;
  EXPECT_NE(chat.output.find("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHä?<|im_end|>\n"),
            std::string::npos)
      << chat.output;
  EXPECT_NE(chat.output.find("⟦Jä.<|im_end|>\n⟧\n"), std::string::npos) << chat.output;
}

// As many labels as training counts.
TEST_F(Shown, ids_are_as_many_as_training_learns) {
  const std::string rows = R"({"prompt": "abc", "completion": "defg"})";
  const ProcessResult run = shown(rows, {"--ids"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  size_t learned = 0;
  for (size_t at = run.output.find(" learned "); at != std::string::npos; at = run.output.find(" learned ", at + 1))
    ++learned;
  EXPECT_NE(run.output.find(" tokens, " + std::to_string(learned - 1) + " learned"), std::string::npos)
      << run.output;  // and the title's
}

TEST_F(Shown, rows_are_cut_as_in_training) {
  const ProcessResult cut = shown(R"({"prompt": "abc", "completion": "0123456789"})", {"--max-length", "8"});
  EXPECT_NE(cut.output.find(" of the first 8\n"), std::string::npos) << cut.output;
  const ProcessResult lost = shown(R"({"prompt": "0123456789", "completion": "abc"})", {"--max-length", "8"});
  EXPECT_NE(lost.output.find("leaves nothing to learn"), std::string::npos) << lost.output;
}

TEST_F(Shown, nothing_in_a_row_steers_the_terminal) {
  for (const char* flag : {"", "--ids"}) {
    const ProcessResult run =
        shown(R"({"text": "a\u001b[31mb\u0007"})", *flag != 0 ? std::vector<std::string>{flag} : std::vector<std::string>());
    EXPECT_EQ(run.exit_code, 0) << run.error;
    EXPECT_EQ(run.output.find('\x1b'), std::string::npos);
    EXPECT_EQ(run.output.find('\a'), std::string::npos);
  }
}

TEST_F(Shown, as_many_rows_as_were_asked_for) {
  const std::string three = "{\"text\": \"a\"}\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n";
  EXPECT_EQ(shown(three, {"--rows", "2"}).output.find("rows.jsonl:3"), std::string::npos);
  EXPECT_NE(shown(three, {"--rows", "9"}).output.find("rows.jsonl:3"), std::string::npos);
  EXPECT_EQ(shown(three, {"--rows", "0"}).exit_code, 2);
}

TEST_F(Shown, what_is_wrong_is_said_in_a_line) {
  const struct {
    const char *row, *says;
  } cases[] = {{R"({"messages": [{"role": "assistant", "content": "a"}], "images": ["x.png"]})",
                "rows.jsonl:1: the row has \"images\""},
               {R"({"prompt": "a"})", "fit no format"},
               {"", "holds no rows"}};
  for (const auto& c : cases) {
    const ProcessResult run = shown(c.row, {"--chat-template", "chatml"});
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_NE(run.error.find(c.says), std::string::npos) << run.error;
  }
  EXPECT_EQ(run_program({"data"}).exit_code, 2);
  EXPECT_NE(run_program({"data", "/nowhere.jsonl", work_.outline().string()}).error.find("/nowhere.jsonl"),
            std::string::npos);
}

}  // namespace

}  // namespace snug::cli_tests
