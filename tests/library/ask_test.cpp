// The C interface beside the program: the same words have the same answer, to the letter.

#include "snug/ask.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace snug::planner::testing {

namespace {

struct Said {
  int code = 0;
  std::string output, messages;
  bool operator==(const Said&) const = default;
};

Said library(const std::vector<std::string>& words) {
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  const std::unique_ptr<snug_answer, void (*)(snug_answer*)> answer(
      snug_ask(static_cast<int>(words.size()), pointers.data()), snug_free);
  return {snug_exit_code(answer.get()), snug_output(answer.get()), snug_messages(answer.get())};
}

std::string text_of(const std::string& name) {
  std::ifstream file(name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Said program(const std::vector<std::string>& words) {
  const std::string kept = ::testing::TempDir() + "/snug-ask";
  std::string command = SNUG_BINARY_DIR "/snug";
  for (const std::string& word : words) command += " '" + word + "'";
  const int status = std::system((command + " >" + kept + ".out 2>" + kept + ".err </dev/null").c_str());
  return {WEXITSTATUS(status), text_of(kept + ".out"), text_of(kept + ".err")};
}

TEST(CInterface, says_what_the_program_says) {
  const std::string log = ::testing::TempDir() + "/snug-ask.log";
  std::ofstream(log)
      << "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
         "23.64 GiB of which 1.51 GiB is free. Process 1 has 22.12 GiB memory in use. Of the allocated memory "
         "21.01 GiB is allocated by PyTorch, and 600.00 MiB is reserved by PyTorch but unallocated.\n";
  const std::vector<std::vector<std::string>> questions{
      {"plan", "meta-llama/Llama-3.1-8B", "--method", "lora", "--gpu", "RTX 4090", "--json"},
      {"plan", "meta-llama/Llama-3.1-8B", "--method", "lora", "--gpu", "RTX 4090"},
      {"plan", "qwen2.5-0.5b", "--method", "full", "--memory", "2GiB"},
      {"plan", "7B", "--textbook", "--bf16"},
      {"plan", "qwen2.5-7b", "--gpu", "A100 80GB", "--solve", "batch"},
      {"models"},
      {"models", "qwen2.5-7b", "--json"},
      {"gpus", "RTX", "4090"},
      {"explain", log},
      {"explain", log, "--json"},
      {"plan", "qwen2.5-7b", "--no-such-flag"},
      {"plan", "no-such-model"}};
  for (const auto& words : questions) EXPECT_EQ(library(words), program(words)) << words[0] << ' ' << words.back();
  EXPECT_EQ(std::string("snug ") + snug_version() + "\n", program({"--version"}).output);
  snug_free(nullptr);
}

}  // namespace

}  // namespace snug::planner::testing
