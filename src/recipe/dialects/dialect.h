#pragma once
// Recipes of other trainers: recognised by their keys, read into our Recipe with the defaults that hold there, and every key
// accounted for: understood, without effect on memory, touching memory and not understood, or unknown. Keys and defaults
// are those of the projects' own argument classes in 2026; each default names its place. Knows no models: `models` says
// what the file calls the model, and whoever has a catalogue looks it up.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/dialects/document.h"
#include "recipe/dialects/list.h"
#include "recipe/recipe.h"

namespace snug {

enum class Dialect : uint8_t {
#define SNUG_DIALECT(dialect) dialect,
  SNUG_DIALECTS(SNUG_DIALECT)
#undef SNUG_DIALECT
};

// As people call it: "LLaMA-Factory".
std::string_view name_of(Dialect dialect);
// What it calls the sequences a device in evaluation.
std::string_view evaluation_batch_key(Dialect dialect);
// Whose model and loop run it on PyTorch, as --trainer has it; "" for a loop of its own that is not modelled.
std::string_view pytorch_trainer(Dialect dialect);
// Whether a frame's file is one of a trainer's whose users know the words of transformers' settings.
bool is_trainers_file(std::string_view file);

enum class KeyFate : uint8_t {
  understood,      // sets `ours`, or says what snug does anyway
  without_effect,  // on memory
  touches_memory,  // and is not understood: the plan is without it
  unknown,
};

struct ForeignKey {
  std::string name;   // "model.lora_rank", as a path
  std::string value;  // as it is written, cut short
  int64_t line = 0;
  KeyFate fate = KeyFate::unknown;
  std::string ours, our_value;  // of understood keys: what they set
  std::string note;             // touches_memory: what it does; others: what to know
  std::string refusal;          // not empty: snug cannot train so, and why
};

struct RecipeChange {
  std::string key, value;  // of ours: "per_device_train_batch_size", "2"
};

enum class Sharding : uint8_t { none, zero1, zero2, zero3, fsdp };

// What a file says of FSDP.
struct FsdpWords {
  int64_t version = 0;          // 0: not said
  bool keeps_gathered = false;  // weights are gathered once for forward and backward
  bool flattens = false;        // use_orig_params off
  bool gathers_ahead = false;   // backward_prefetch: BACKWARD_PRE
  bool wraps_blocks = true;     // auto_wrap
  std::string other;            // that no plan follows
};

struct ForeignRecipe {
  Dialect dialect = Dialect::hugging_face;
  Recipe recipe;
  std::vector<std::string> models;     // what the model may be called, likeliest first; recipe.model is the first
  std::string tokenizer;               // what it calls the tokenizer's model; "": not said
  std::vector<std::string> keys_set;   // our names of what the file sets
  std::vector<ForeignKey> keys;        // in the file's order
  std::vector<RecipeChange> assumed;   // what the file leaves to the dialect's defaults, where that is not ours
  std::vector<std::string> notes;      // what else a reader of the plan should know
  std::vector<std::string> run_notes;  // and who trains with it
  std::vector<std::string> data;       // data sets that the file names
  std::string keys_in;                 // a script that names no model: the file of keys that it hands on
  std::string stage = "sft";           // "dpo", "grpo", "pt", …
  std::string unmodelled;              // what in it no model of PyTorch follows: "LitGPT in mixed precision"
  int64_t gpus = 0;                    // 0: not said
  Sharding sharding = Sharding::none;
  FsdpWords fsdp;
  bool offloads = false;    // weights or states in host memory
  int64_t eval_batch = 0;   // sequences a device in evaluation; 0: it does not say
  int64_t eval_length = 0;  // tokens, where evaluation has a length of its own

  // Names of the keys with that fate.
  std::vector<std::string> named(KeyFate fate) const;
  // Why snug cannot train so, one line a key; `has_data`: a file was given in place of the data sets that it names.
  std::vector<std::string> refusals(bool has_data) const;
};

// The dialect of a file by its keys and command; none for our own recipes and for files that are no recipes.
std::optional<Dialect> recognise(const dialects::Document& document);

// What a file that is no training recipe is, where its keys tell: "a DeepSpeed configuration"; else "".
std::string what_else(const dialects::Document& document);

// Reads a recognised document. Throws Error for a value that no reading makes sense of.
ForeignRecipe read_foreign(const dialects::Document& document, Dialect dialect);

// Reads settings of a script that is its author's alone, YAML or JSON, by the Trainer's names, and says so in a note; none
// where they are no such settings or might be ours.
std::optional<ForeignRecipe> read_in_own_words(const dialects::Document& given);

// Whether it has the Trainer's names alone, and none of a model.
bool leaves_model_to_others(const dialects::Document& document);

// Recognises and reads; settings that name no model with what the script says that reads them. Nothing for what is not
// another trainer's recipe.
std::optional<ForeignRecipe> read_foreign_recipe(const dialects::Document& document);

// The same of a text; throws Error for one that is broken.
std::optional<ForeignRecipe> read_foreign_recipe(std::string_view text, const std::string& where);

// "axolotl recipe; keys that touch memory and are not planned: deepspeed, rl", one line for people.
std::string describe(const ForeignRecipe& recipe);

}  // namespace snug
