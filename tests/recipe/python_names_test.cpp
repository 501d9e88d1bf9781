// Which of several bindings a name of a Python script has, and which of its statements are run.

#include <gtest/gtest.h>

#include <chrono>

#include "base/error.h"
#include "recipe/support_dialects.h"
#include "sanitized.h"
#include "temporary_directory.h"

namespace snug::testing {

namespace {

class PythonNames : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) const { std::ofstream(directory_ / name) << text; }
  ForeignRecipe read(const std::string& script) const { return foreign(script, (directory_ / "train.py").string()); }
  // What `flags` make of a script.
  ForeignRecipe started(const std::string& script, const std::string& flags) const {
    put("train.py", script);
    return foreign("python train.py " + flags + "\n", (directory_ / "run.sh").string());
  }

  test::TemporaryDirectory directory_;
};

const std::string kParser =
    "p = argparse.ArgumentParser()\np.add_argument('--bs', type=int, default=6)\np.add_argument('--lora', "
    "action='store_true')\n"
    "p.add_argument('--bits', default='16')\na = p.parse_args()\nmodel = "
    "AutoModelForCausalLM.from_pretrained('google/gemma-2b')\n";
const std::string kTrain = "Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=a.bs))\n";

TEST_F(PythonNames, of_other_functions_and_classes_are_not_seen) {
  const ForeignRecipe recipe = read(R"(
batch_size = 4
class Config:
    rows = 3
class EvalConfig:
    rows = 64
def generate():
    batch_size = 64
def main():
    cfg = Config()
    model = AutoModelForCausalLM.from_pretrained('google/gemma-2b')
    Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=batch_size, gradient_accumulation_steps=cfg.rows))
main()
)");
  EXPECT_EQ(recipe.recipe.batch, 4);
  EXPECT_EQ(recipe.recipe.accumulation, 3);
}

TEST_F(PythonNames, come_from_the_module_that_they_are_brought_from) {
  put("data.py", "base = 'google/gemma-7b'\nrows = 9\nif __name__ == '__main__':\n    own = 64\n");
  put("config.py", "base = 'google/gemma-2b'\nrows = 2\nown = 5\nif __name__ == '__main__':\n    own = 64\n");
  for (const char* import : {"from data import load\nfrom config import base, rows, own\n",
                             "import data\nimport config as c\nbase, rows, own = c.base, c.rows, c.own\n"}) {
    const ForeignRecipe recipe =
        read(std::string(import) +
             "model = AutoModelForCausalLM.from_pretrained(base)\nTrainer(model=model, "
             "args=TrainingArguments('o', per_device_train_batch_size=rows, gradient_accumulation_steps=own))\n");
    EXPECT_EQ(recipe.models.front(), "google/gemma-2b") << import;
    EXPECT_EQ(recipe.recipe.batch, 2) << import;
    EXPECT_EQ(recipe.recipe.accumulation, 5) << import;
  }
}

TEST_F(PythonNames, may_be_changed_by_what_follows) {
  EXPECT_EQ(started(kParser + "if a.lora: a.bs = 1\n" + kTrain, "--bs 8").recipe.batch, 8);
  EXPECT_EQ(started(kParser + "if a.lora: a.bs = 1\n" + kTrain, "--bs 8 --lora").recipe.batch, 1);
  EXPECT_EQ(started(kParser + "a.bs = a.bs // 2\n" + kTrain, "--bs 8").recipe.batch, 4);
  const std::string local =
      "bs = a.bs\nbs //= 2\nTrainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=bs))\n";
  EXPECT_EQ(started(kParser + local, "--bs 8").recipe.batch, 4);
  // Items of a dict, under their conditions; the last of a key holds.
  const std::string items =
      "t = dict(per_device_train_batch_size=2)\nif a.lora:\n    t['gradient_checkpointing'] = True\n"
      "t['per_device_train_batch_size'] = 5\nTrainer(model=model, args=TrainingArguments('o', **t))\n";
  EXPECT_EQ(started(kParser + items, "").recipe.batch, 5);
  EXPECT_FALSE(started(kParser + items, "").recipe.gradient_checkpointing);
  EXPECT_TRUE(started(kParser + items, "--lora").recipe.gradient_checkpointing);
}

TEST_F(PythonNames, what_is_not_run_says_nothing) {
  const std::string wrap = "model = get_peft_model(model, LoraConfig(r=4))\n";
  const std::string early =
      "def wrap(m):\n    if not a.lora:\n        return m\n    return get_peft_model(m, LoraConfig(r=4))\n";
  const std::string on_one_line =
      "def wrap(m):\n    if not a.lora: return m\n    return get_peft_model(m, LoraConfig(r=4))\n";
  const std::string uncalled = "def infer():\n    m = PeftModel.from_pretrained(model, 'x')\n    " + wrap;
  for (const std::string& adapts : {"if a.lora: " + wrap, "if a.lora:\n    " + wrap, early + "model = wrap(model)\n",
                                    on_one_line + "model = wrap(model)\n", uncalled + "if a.lora:\n    infer()\n"}) {
    EXPECT_EQ(started(kParser + adapts + kTrain, "").recipe.method, Method::full) << adapts;
    EXPECT_EQ(started(kParser + adapts + kTrain, "--lora").recipe.method, Method::lora) << adapts;
  }
  // Returned behind a condition, or else behind it.
  const std::string rows =
      "def rows(lora):\n    if lora: return 6\n    elif not lora: return 5\n    return 4\nTrainer(model=model, "
      "args=TrainingArguments('o', per_device_train_batch_size=rows(a.lora)))\n";
  EXPECT_EQ(started(kParser + rows, "").recipe.batch, 5);
  EXPECT_EQ(started(kParser + rows, "--lora").recipe.batch, 6);
  // Two stages, one of which is asked for.
  const std::string stages =
      kParser +
      "def one():\n    Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=1))\ndef two():\n"
      "    Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=2))\nif a.lora:\n    two()\nelse:\n"
      "    one()\n";
  EXPECT_EQ(started(stages, "").recipe.batch, 1);
  EXPECT_EQ(started(stages, "--lora").recipe.batch, 2);
}

TEST_F(PythonNames, words_of_a_command_are_compared_as_the_script_takes_them) {
  const std::string script = kParser +
                             "n = 3 if a.bits == '4' else 1\nTrainer(model=model, args=TrainingArguments('o', "
                             "per_device_train_batch_size=n))\n";
  EXPECT_EQ(started(script, "--bits 4").recipe.batch, 3);
  EXPECT_EQ(started(script, "").recipe.batch, 1);
}

// "if args.base: cfg.base = args.base": an option without a default leaves settings as they are made.
TEST_F(PythonNames, an_option_without_a_default_leaves_settings_alone) {
  const std::string script =
      "@dataclass\nclass Settings:\n    base: str = 'google/gemma-2b'\n    rows: int = 3\n"
      "p = argparse.ArgumentParser()\np.add_argument('--base', default=None)\np.add_argument('--rows', type=int, "
      "default=None)\n"
      "args = p.parse_args()\ncfg = Settings()\nif args.base: cfg.base = args.base\nif args.rows: cfg.rows = args.rows\n"
      "model = AutoModelForCausalLM.from_pretrained(cfg.base)\n"
      "Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=cfg.rows)).train()\n";
  EXPECT_EQ(model_of(started(script, "")), "google/gemma-2b");
  EXPECT_EQ(started(script, "").recipe.batch, 3);
  const ForeignRecipe told = started(script, "--base Qwen/Qwen2.5-0.5B --rows 5");
  EXPECT_EQ(model_of(told), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(told.recipe.batch, 5);
}

TEST_F(PythonNames, defaults_that_a_parser_is_given_later_and_commands_of_a_script) {
  const std::string train = "Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=args.rows))\n";
  const std::string model = "model = AutoModelForCausalLM.from_pretrained('google/gemma-2b')\n";
  EXPECT_EQ(read("p = argparse.ArgumentParser()\np.add_argument('--rows', default=2)\np.set_defaults(rows=6)\n"
                 "args = p.parse_args()\n" +
                 model + train)
                .recipe.batch,
            6);
  const std::string commands =
      "p = argparse.ArgumentParser()\nsub = p.add_subparsers(dest='what')\nt = sub.add_parser('train')\n"
      "t.add_argument('--rows', type=int, default=3)\ns = sub.add_parser('sweep')\ns.add_argument('--rows', default=5)\n"
      "e = sub.add_parser('score')\ne.add_argument('--rows', default=64)\nargs = p.parse_args()\n" +
      model + "if args.what == 'sweep':\n  args.rows = args.rows * 2\n" + train;
  EXPECT_EQ(started(commands, "train").recipe.batch, 3);
  EXPECT_EQ(started(commands, "train --rows 7").recipe.batch, 7);
  EXPECT_EQ(started(commands, "sweep").recipe.batch, 10);
}

TEST_F(PythonNames, objects_are_what_they_were_made_of) {
  const std::string classes =
      "class Settings:\n  model = 'google/gemma-2b'\n  rows = 3\nclass Wide:\n  model = 'google/gemma-7b'\n  rows = 1\n"
      "class Run:\n  def __init__(self, settings, steps=4):\n    self.settings = settings\n    self.steps = steps\n"
      "  def go(self):\n    cfg = self.settings\n    model = AutoModelForCausalLM.from_pretrained(self.settings.model)\n"
      "    Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=cfg.rows, "
      "gradient_accumulation_steps=self.steps))\n";
  const ForeignRecipe recipe = read(classes + "s = Settings()\nRun(s, steps=2).go()\n");
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.batch, 3);
  EXPECT_EQ(recipe.recipe.accumulation, 2);
  EXPECT_EQ(read(classes + "Run(Wide()).go()\n").models.front(), "google/gemma-7b");
  EXPECT_EQ(read(classes + "Run(Wide()).go()\n").recipe.accumulation, 4);
}

// A function sees what the module holds when it is called, not where it stands.
TEST_F(PythonNames, in_functions_are_what_they_are_when_those_are_called) {
  const std::string script =
      "rows = 8\n"
      "def train(name):\n"
      "  settings = TrainingArguments('o', per_device_train_batch_size=rows)\n"
      "  Trainer(AutoModelForCausalLM.from_pretrained(name), settings).train()\n"
      "def main():\n"
      "  train('gpt2')\n"
      "if __name__ == '__main__':\n"
      "  parser.add_argument('--rows', type=int, default=3)\n"
      "  args = parser.parse_args()\n"
      "  rows = args.rows\n";
  EXPECT_EQ(read(script + "  train('gpt2')\n").recipe.batch, 3);
  EXPECT_EQ(read(script + "  main()\n").recipe.batch, 3);
  EXPECT_EQ(read(script + "  main()\n  rows = 5\n").recipe.batch, 3);
  EXPECT_EQ(read("def train(name):\n  train(name)\n" + script + "  main()\n").recipe.batch, 3);
}

TEST_F(PythonNames, end_with_what_is_too_long) {
  std::string unclosed, choice = "x = 1", chain, branches = "if a == 0:\n  y = 1\n", keys = "d = {}\n", calls = "x = 1\n";
  for (int i = 0; i < drawn(100'000); ++i) unclosed += "def f(";
  for (int i = 0; i < drawn(20'000); ++i) choice += " if a else 1";
  for (int i = 0; i < drawn(100'000); ++i) chain += "z = ";
  for (int i = 1; i < drawn(6'000); ++i) branches += "elif a == " + std::to_string(i) + ":\n  y = 2\n";
  for (int i = 1; i < drawn(4'000); ++i) keys += "d['k" + std::to_string(i) + "'] = d['k1']\n";
  for (int i = 0; i < drawn(20'000); ++i)
    calls += "def f" + std::to_string(i) + "():\n  y = x\n  f" + std::to_string(std::max(0, i - 1)) + "()\n";
  const std::string end =
      "model = AutoModelForCausalLM.from_pretrained('google/gemma-2b')\nTrainer(model=model, args=TrainingArguments("
      "'o', per_device_train_batch_size=x, max_steps=y, gradient_accumulation_steps=z, seed=d['k1']))\n";
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string& text : {choice + "\n", chain + "1\n", branches, keys, calls})
    EXPECT_EQ(read(text + end).models.front(), "google/gemma-2b");
  EXPECT_THROW(static_cast<void>(read(unclosed)), Error);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(kSanitized ? 180 : 30));
}

}  // namespace

}  // namespace snug::testing
