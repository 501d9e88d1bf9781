// What a Python script takes from files beside it: modules that it imports, JSON and YAML that it loads.

#include <gtest/gtest.h>

#include <algorithm>

#include "recipe/dialects/changes.h"
#include "recipe/support_dialects.h"

namespace snug::testing {

namespace {

class PythonFiles : public RecipeFolder {
 protected:
  ForeignRecipe read(const std::string& script) const { return foreign(script, (directory_ / "train.py").string()); }
};

// Loads and trains with what `config` holds.
std::string trained_with(const std::string& model, const std::string& batch) {
  return "model = AutoModelForCausalLM.from_pretrained(" + model + ")\nTrainer(model=model, args=TrainingArguments('out', " +
         "per_device_train_batch_size=" + batch + ")).train()\n";
}

TEST_F(PythonFiles, modules_of_its_own_say_what_it_imports) {
  put("config.py",
      "from dataclasses import dataclass\n@dataclass\nclass Config:\n    model_name: str = 'Qwen/Qwen3-0.6B'\n"
      "    batch: int = 3\n");
  put("conf/params.py", "BASE = 'google/gemma-2b'\nBATCH = 5\ndef settings():\n    return {'batch': 7}\n");
  ForeignRecipe recipe =
      read("from config import Config\nconfig = Config()\n" + trained_with("config.model_name", "config.batch"));
  EXPECT_EQ(recipe.models.front(), "Qwen/Qwen3-0.6B");
  EXPECT_EQ(recipe.recipe.batch, 3);
  EXPECT_TRUE(says(recipe, "read beside it: config.py"));
  for (const char* import :
       {"from conf.params import BASE, BATCH\n", "from conf.params import (BASE as BASE,\n  BATCH)\n",
        "from conf import params\nBASE = params.BASE\nBATCH = params.BATCH\n",
        "import conf.params\nBASE, BATCH = conf.params.BASE, conf.params.BATCH\n", "from .conf.params import *\n"}) {
    recipe = read(import + trained_with("BASE", "BATCH"));
    ASSERT_FALSE(recipe.models.empty()) << import;
    EXPECT_EQ(recipe.models.front(), "google/gemma-2b") << import;
    EXPECT_EQ(recipe.recipe.batch, 5) << import;
  }
  recipe = read("from conf.params import settings\nc = settings()\n" + trained_with("'google/gemma-2b'", "c['batch']"));
  EXPECT_EQ(recipe.recipe.batch, 7);
  // The script's own names come first.
  recipe = read("from conf.params import BATCH\nBATCH = 2\n" + trained_with("'google/gemma-2b'", "BATCH"));
  EXPECT_EQ(recipe.recipe.batch, 2);
}

TEST_F(PythonFiles, json_and_yaml_that_it_loads_are_read) {
  put("run.json", R"({"model": {"name": "Qwen/Qwen3-0.6B"}, "batch": 3})");
  put("conf/run.yaml", "model: {name: Qwen/Qwen3-0.6B}\nbatch: 3\n");
  const char* const ways[] = {
      "with open('run.json') as f:\n    c = json.load(f)\n",
      "with open('run.json', 'r', encoding='utf-8') as f:\n    c = json.loads(f.read())\n",
      "c = json.load(open('run.json'))\n",
      "def load(path):\n    with open(path) as f:\n        return json.load(f)\nc = load('run.json')\n",
      ("p = argparse.ArgumentParser()\np.add_argument('--config', default='conf/run.yaml')\nargs = p.parse_args()\n"
       "with open(args.config) as f:\n    c = yaml.safe_load(f)\n"),
      "c = yaml.safe_load(open(os.path.join(here, 'conf/run.yaml')))\n"};
  for (const char* way : ways) {
    const ForeignRecipe recipe = read(way + trained_with("c['model']['name']", "c['batch']"));
    ASSERT_FALSE(recipe.models.empty()) << way;
    EXPECT_EQ(recipe.models.front(), "Qwen/Qwen3-0.6B") << way;
    EXPECT_EQ(recipe.recipe.batch, 3) << way;
  }
  const ForeignRecipe recipe = read("c = OmegaConf.load('conf/run.yaml')\n" + trained_with("c.model.name", "c.batch"));
  EXPECT_EQ(recipe.models.front(), "Qwen/Qwen3-0.6B");
  EXPECT_TRUE(says(recipe, "read beside it: conf/run.yaml"));
}

// A file is read once, however many of its values are used.
TEST_F(PythonFiles, are_read_once) {
  put("run.json", R"({"batch": 3})");
  std::string uses = "c = json.load(open('run.json'))\n";
  for (int i = 0; i < 100; ++i) uses += "x" + std::to_string(i) + " = c['batch']\ntokenizer(max_length=c['batch'])\n";
  EXPECT_EQ(read(uses + trained_with("'google/gemma-2b'", "c['batch']")).recipe.batch, 3);
  put("large.json", "{\"batch\": 3, \"more\": \"" + std::string(70'000, 'x') + "\"}");
  EXPECT_EQ(read("c = json.load(open('large.json'))\n" + trained_with("'google/gemma-2b'", "c['batch']")).recipe.batch, 8);
}

// What is not there, is broken, or imports itself, says nothing, and nothing else is lost by it.
TEST_F(PythonFiles, that_are_missing_or_broken_say_nothing) {
  put("broken.py", "x = '''\n");
  put("broken.json", "{");
  put("a.py", "from b import *\nBATCH = 3\n");
  put("b.py", "from a import *\nMODEL = NAME\n");
  std::filesystem::create_directory(directory_ / "folder.json");
  for (const char* first :
       {"from nowhere import BATCH\n", "from broken import BATCH\n", "BATCH = json.load(open('none.json'))\n",
        "BATCH = json.load(open('broken.json'))['batch']\n", "BATCH = json.load(open('folder.json'))['b']\n",
        "BATCH = json.load(open('/dev/zero'))\n", "from b import MODEL as BATCH\n"}) {
    const ForeignRecipe recipe = read(first + trained_with("'google/gemma-2b'", "BATCH"));
    EXPECT_EQ(recipe.models.front(), "google/gemma-2b") << first;
    EXPECT_EQ(recipe.recipe.batch, 8) << first;  // the Trainer's
  }
  EXPECT_EQ(read("from a import BATCH\n" + trained_with("'google/gemma-2b'", "BATCH")).recipe.batch, 3);
}

// Thirty modules, each of which imports all before it, are two to the thirtieth ways to ask for a name.
TEST_F(PythonFiles, that_import_each_other_in_all_ways_come_to_an_end) {
  std::string imports;
  for (int i = 0; i < 30; ++i) {
    put("m" + std::to_string(i) + ".py", imports + "VALUE_" + std::to_string(i) + " = 1\n");
    imports += "from m" + std::to_string(i) + " import *\n";
  }
  const ForeignRecipe recipe = read("from m29 import *\n" + trained_with("'google/gemma-2b'", "NOWHERE"));
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.batch, 8);
}

// A change is not written over what only names a value of another file.
TEST_F(PythonFiles, are_not_changed_through_the_script) {
  put("config.py", "BATCH = 3\n");
  const std::string script = "from config import BATCH\n" + trained_with("'google/gemma-2b'", "BATCH");
  const std::vector<RecipeChange> changes = {{"per_device_train_batch_size", "1"}};
  const std::string where = (directory_ / "train.py").string();
  const RecipePatch patch = change_foreign_recipe(script, where, changes);
  if (patch.unsaid.empty()) {
    EXPECT_EQ(foreign(patch.text, where).recipe.batch, 1) << patch.text;
  } else {
    EXPECT_EQ(patch.text, script);
  }
}

// A library that is imported under a condition that does not hold trains nothing.
TEST(PythonScripts, imports_count_where_they_are_run) {
  const std::string script =
      "if with_unsloth:\n    from unsloth import FastLanguageModel\n"
      "model = AutoModelForCausalLM.from_pretrained('google/gemma-2b')\n"
      "Trainer(model=model, args=TrainingArguments('out')).train()\n";
  EXPECT_EQ(foreign("with_unsloth = False\n" + script, "r.py").dialect, Dialect::hugging_face);
  EXPECT_EQ(foreign("with_unsloth = True\n" + script, "r.py").dialect, Dialect::unsloth);
}

}  // namespace

}  // namespace snug::testing
