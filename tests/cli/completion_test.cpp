// What each shell offers for Tab, asked of the shell itself.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "cli/command_table.h"
#include "cli/flag_words.h"
#include "cli/support_process.h"
#include "temporary_directory.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

Lines lines_of_text(const std::string& text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool is_installed(const std::string& shell) { return fs::exists("/usr/bin/" + shell); }

// A directory with the script of a shell, and a file and a directory to be found.
class Shell {
 public:
  explicit Shell(const std::string& name) : name_(name) {
    std::ofstream(work_ / (name == "zsh" ? "_snug" : "snug." + name)) << run_program({"completion", name}).output;
    std::ofstream(work_ / "run.log") << "";
    fs::create_directories(work_ / "model-dir");
  }

  // The words that are offered at the end of a line, sorted.
  Lines offers(const std::string& line) const {
    const ProcessResult result =
        run_program({"-c", asks(line)}, {.program = "/usr/bin/" + name_,
                                         .environment = {{"HOME", work_.path().string()}, {"LC_ALL", "C.UTF-8"}},
                                         .directory = work_.path()});
    EXPECT_EQ(result.error, "") << line;
    Lines lines = lines_of_text(result.output);
    std::ranges::sort(lines);
    return lines;
  }

 private:
  std::string asks(const std::string& line) const {
    if (name_ == "fish") return "source snug.fish; complete -C '" + line + "' | string replace -r '\\t.*' ''";
    if (name_ == "bash") return bash_asks(line);
    return zsh_asks(line);
  }

  // As readline calls it, which breaks words at = too.
  static std::string bash_asks(const std::string& line) {
    return "source snug.bash\n"
           "line='" +
           line +
           "'\n"
           "COMP_WORDS=(${line//=/ = }); [ \"${line: -1}\" != ' ' ] || COMP_WORDS+=('')\n"
           "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_LINE=$line; COMP_POINT=${#line}\n"
           "compopt() { :; }; _snug; printf '%s\\n' \"${COMPREPLY[@]}\" | sort -u | sed '/^$/d'";
  }

  // A zsh of its own, on a terminal: what completers add is written down too, and a key asks and ends the line.
  static std::string zsh_asks(const std::string& line) {
    return R"(rm -f offers ready; zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PROMPT= RPROMPT=; fpath=($PWD $fpath); autoload -U compinit; compinit -u -d $PWD/dump'
zpty -w shell 'compadd() { local -a said; builtin compadd -O said "$@"; print -rl -- "+"${^said} >> offers; builtin compadd "$@" }'
zpty -w shell 'ask() { zle complete-word; print end >> offers; BUFFER= }; zle -N ask; bindkey "^T" ask; print ready > ready'
for i in {1..400}; do [[ -s ready ]] && break; sleep 0.05; done
zpty -w -n shell ')" +
           line + R"('$'\x14'
for i in {1..400}; do [[ -f offers ]] && grep -q '^end' offers && break; sleep 0.05; done
zpty -d shell
sed -n 's/^+\(.\)/\1/p' offers | sort -u
)";
  }

  test::TemporaryDirectory work_;
  std::string name_;
};

bool holds(const Lines& lines, const std::string& line) { return std::ranges::find(lines, line) != lines.end(); }

class Completion : public ::testing::TestWithParam<const char*> {};

TEST_P(Completion, offers_commands_flags_keys_and_their_values) {
  if (!is_installed(GetParam())) GTEST_SKIP() << GetParam() << " is not installed";
  const Shell shell(GetParam());
  EXPECT_EQ(shell.offers("snug me"), (Lines{"measure", "merge"}));
  EXPECT_EQ(shell.offers("snug plan --lev"), (Lines{"--levers"}));
  EXPECT_EQ(shell.offers("snug train --lora-dr"), (Lines{"--lora-dropout"}));
  EXPECT_EQ(shell.offers("snug plan --gpu H2"), (Lines{"H200-SXM-141GB"}));
  EXPECT_EQ(shell.offers("snug plan mistralai/Mistral-7B-v"),
            (Lines{"mistralai/Mistral-7B-v0.1", "mistralai/Mistral-7B-v0.3"}));
  EXPECT_EQ(shell.offers("snug train --optim paged_l"), (Lines{"paged_lion_32bit", "paged_lion_8bit"}));
  EXPECT_EQ(shell.offers("snug export --outtype "), (Lines{"bf16", "f16", "f32", "q8_0"}));
  const std::string flag = GetParam() == std::string("fish") ? "--bnb-4bit-quant-type=" : "";  // it offers the whole word
  EXPECT_EQ(shell.offers("snug plan --bnb-4bit-quant-type="), (Lines{flag + "fp4", flag + "nf4"}));
  EXPECT_TRUE(holds(shell.offers("snug measure --gpu RTX-4090 -- find"), "find"));
  EXPECT_EQ(shell.offers("snug completion "), (Lines{"bash", "fish", "zsh"}));
}

TEST_P(Completion, offers_files_where_files_are_meant) {
  if (!is_installed(GetParam())) GTEST_SKIP() << GetParam() << " is not installed";
  const Shell shell(GetParam());
  EXPECT_EQ(shell.offers("snug explain ru"), (Lines{"run.log"}));
  const Lines directories = shell.offers("snug merge --output-dir mo");
  ASSERT_EQ(directories.size(), 1U);
  EXPECT_TRUE(directories[0] == "model-dir" || directories[0] == "model-dir/") << directories[0];
  EXPECT_FALSE(holds(shell.offers("snug watch "), "run.log"));
}

INSTANTIATE_TEST_SUITE_P(Shells, Completion, ::testing::Values("bash", "zsh", "fish"),
                         [](const auto& of) { return std::string(of.param); });

// What a command takes stands in its page of help, so that no shell offers a flag without a word on it.
TEST(FlagWords, every_flag_of_every_command_has_its_line_of_help) {
  int flags = 0;
  for (const cli::Command& command : cli::commands()) {
    EXPECT_NE(cli::summary_of(command.name), "") << command.name;
    for (const cli::FlagWords& flag : cli::own_flag_words(command)) {
      EXPECT_NE(flag.help, "") << command.name << " --" << flag.name;
      EXPECT_EQ(flag.takes == Takes::nothing, flag.value.empty()) << command.name << " --" << flag.name;
      ++flags;
    }
  }
  EXPECT_GT(flags, 100);
}

TEST(FlagWords, a_shell_that_there_is_no_script_for_is_named) {
  const ProcessResult result = run_program({"completion", "tcsh"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.error, "snug: there is no completion for 'tcsh': snug completion bash|zsh|fish\n");
}

}  // namespace

}  // namespace snug::cli_tests
