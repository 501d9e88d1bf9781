#pragma once
// What all dialects share in being read: tables of rows, and the state of one reading. A dialect is a set of Rules.

#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recipe/dialects/dialect.h"

namespace snug::dialects {

class Reading;
using Take = void (*)(Reading&, const Entry&);

// Their key. Without `take` its value goes to `ours` as it stands. The first row of an `ours` is how it is written.
struct Row {
  std::string_view theirs, ours;
  Take take = nullptr;
};

// A key that touches memory in a way that is not planned, unless it is off. A path that ends in "*" stands for all that
// begin so.
struct Touch {
  std::string_view theirs, why;
  std::string_view also_off;   // words besides false, null, 0 … under which nothing changes, space between
  std::string_view only_with;  // has an effect only where this key is on
};

// A value in their words; an empty value with `remove` takes the key out.
struct TheirSetting {
  std::string path, value;
  bool remove = false;
};

// For whom changes are written: the file as it is, and the recipe when all of them are made.
struct Wanted {
  const ForeignRecipe& read;
  Recipe recipe;
};

// A program of the command line that trains, and flags as it takes them.
struct Tool {
  std::string_view program;
  std::vector<std::string_view> verbs;
  std::string_view module = {};  // what python's -m calls it
  bool pairs = false;            // words "key=value" are keys
  bool launches = false;         // flags before --config are the launcher's
};

// How surely a file is of a dialect: beyond doubt, whatever a launcher's own keys beside them are called; by keys that
// others lack; by what its script is called; by no more than keys that several have.
enum class Claim : uint8_t { none, possible, likely, sure, certain };

struct Rules {
  std::string_view name;                       // as people call it
  Claim (*claims)(const Document&) = nullptr;  // of a file without a tool of ours: keys, or a script of Python's
  // What a file of this dialect is that trains nothing; "" for others.
  std::string_view (*otherwise)(const Document&) = nullptr;
  std::vector<Tool> tools;
  std::string_view evaluation_batch = "per_device_eval_batch_size";
  std::string_view pytorch_trainer = "transformers";  // as dialect.h has it
  std::vector<std::string_view> frames;               // parts of its files' paths, as dialect.h has them
  std::vector<Row> rows;
  std::vector<Touch> touches;
  std::vector<std::string_view> ignored;  // texts of keys, space between; "*" as above
  bool by_leaf = false;                // keys are known by the last part of their path (files that users lay out themselves)
  void (*start)(Reading&) = nullptr;   // defaults, before the keys
  void (*finish)(Reading&) = nullptr;  // what several keys decide together
  // How a change of ours is written; false: as the rows say. Nothing added: the dialect has no word for it.
  bool (*write)(const Document&, const Wanted&, const RecipeChange&, std::vector<TheirSetting>&) = nullptr;
  std::vector<std::string_view> beside;  // keys after which new ones are put, best first; others: the last plain key
};

const Rules& rules_of(Dialect dialect);
#define SNUG_DIALECT(dialect) Rules dialect##_rules();
SNUG_DIALECTS(SNUG_DIALECT)
#undef SNUG_DIALECT

constexpr Dialect kDialects[] = {
#define SNUG_DIALECT(dialect) Dialect::dialect,
    SNUG_DIALECTS(SNUG_DIALECT)
#undef SNUG_DIALECT
};

// For claims: which of these keys a file has, and whether its script's name has that part.
bool has_any(const Document& document, std::initializer_list<std::string_view> paths);
size_t count_of_keys(const Document& document, std::initializer_list<std::string_view> paths);
bool script_says(const Document& document, std::string_view part);
// Whether a script or one of its commands is called as what trains: "train_sft.py", "finetune".
bool sounds_like_training(std::string_view name);
bool trains_images(const Document& document);  // diffusers' scripts

// Rows of TrainingArguments that say when to save and evaluate, and what evaluations decide; axolotl and Unsloth take them
// too.
void add_strategies(Rules& rules);
// Rows of Hugging Face's TrainingArguments, those among them, which TRL, LLaMA-Factory and ms-swift inherit.
void add_trainer(Rules& rules);

class Reading {
 public:
  Reading(const Document& document, Dialect dialect);
  ForeignRecipe read();

  const Document& document() const { return document_; }
  ForeignRecipe& result() { return result_; }
  Recipe& recipe() { return result_.recipe; }

  // Value of a key of theirs; "" if it is not given or null.
  std::string value(std::string_view path) const;
  bool is_on(std::string_view path) const;   // given and not off
  bool is_off(std::string_view path) const;  // given, not null, and off
  bool has(std::string_view ours) const;     // set by the file

  // A default of the dialect: set before the keys are read; told if the file leaves it so.
  void assume(std::string_view ours, std::string_view value);
  void note(std::string text);

  // What became of an entry; the last word holds.
  void set(const Entry& entry, std::string_view ours, std::string_view value);
  void set_list(const Entry& entry, std::string_view ours, const std::vector<std::string>& written);
  void understood(const Entry& entry, std::string note = {});
  void ignore(const Entry& entry, std::string refusal = {});
  void touches(const Entry& entry, std::string why);
  // Sets a key of ours from several of theirs, after all are read.
  void decide(std::string_view ours, std::string_view value);

  void model(const std::string& name);  // one more thing that the model may be called
  void data(const std::string& name);

 private:
  void settle();
  void settle_schedule();
  void note_defaults();
  void guess_model();
  void guess_bits();
  void note_config();
  void classify(const Entry& entry);
  bool take_row(const Entry& entry);
  bool take_touch(const Entry& entry);
  bool is_empty(const Entry& map) const;
  bool has_rows_below(const std::string& path) const;
  bool is_ignored(std::string_view path) const;
  ForeignKey& key_of(const Entry& entry);
  void mark_set(std::string_view ours);

  const Document& document_;
  const Rules& rules_;
  ForeignRecipe result_;
  std::map<std::pair<int64_t, std::string>, size_t> places_;  // of result_'s keys, by line and name
  std::set<std::string, std::less<>> claimed_;                // mappings and lists that speak for what they hold
};

// A value as they write it, and ours; of several rows with one of ours the first is how it is written.
struct Saying {
  std::string_view theirs, ours;
};
std::string_view ours_of(std::span<const Saying> words, std::string_view theirs);  // "" if it is none of them
std::string_view theirs_of(std::span<const Saying> words, std::string_view ours);

// Takes that several dialects share.
void take_model(Reading&, const Entry&);
void take_data(Reading&, const Entry&);
void take_dtype(Reading&, const Entry&);  // torch_dtype, dtype
void take_schedule_arguments(Reading&, const Entry&);
void take_optimizer(Reading&, const Entry&);
void take_checkpointing(Reading&, const Entry&);  // true, false, "unsloth", "offload", …
void take_quantization_bit(Reading&, const Entry&);
void take_deepspeed(Reading&, const Entry&);
void take_accelerate(Reading&, const Entry&);
void take_fsdp(Reading&, const Entry&);
void take_fsdp_config(Reading&, const Entry&);
void take_eval_batch(Reading&, const Entry&);
void take_attention(Reading&, const Entry&);
void take_report(Reading&, const Entry&);
void take_on(Reading&, const Entry&);  // does what snug does anyway
void take_stage(Reading&, const Entry&);
void take_count(Reading&, const Entry&);  // "0" and null are the default
void take_bf16(Reading&, const Entry&);
void take_targets(Reading&, const Entry&);
void take_adapted(Reading&, const Entry&);  // ms-swift's target_modules
void take_padding_free(Reading&, const Entry&);
void take_template(Reading&, const Entry&);  // a trainer's own wording of conversations
void take_optimizer_arguments(Reading&, const Entry&);

// Whether a data set's name is that of a file.
bool is_file(const std::string& name);

// Adds "launch.…" and "env.…": how many devices, which sharding.
void read_launcher(Reading& reading);

std::string lower(std::string_view text);
int64_t count_of(std::string_view text);  // -1 for what is no whole number
// Of what is asked and what is answered, together; 0 where one of them is no length.
int64_t joint_length(std::string_view asked, std::string_view answered);

// The key that a stage other than sft and pt makes touch memory.
std::string why_stage(std::string_view stage);

}  // namespace snug::dialects
