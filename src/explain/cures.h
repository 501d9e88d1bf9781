#pragma once
// What to change, by the verdict on a snapshot: changes that take away what filled the memory, with what each gives. What is
// enough alone comes first, then what changes least.

#include <string>
#include <vector>

#include "explain/remedies.h"
#include "explain/verdict.h"

namespace snug {

// What the snapshot's stacks tell of the program's settings.
struct Settings {
  bool checkpointed = false;  // gradient checkpointing is on
  bool hooked = false;        // what grows was made deep inside of the model: a forward hook keeps it
  bool evaluated = false;     // what grows was made by a trainer's evaluation
  bool cast = false;          // the weights at fault were made by casting or copying others
  bool merged = false;        // an adapter is being merged into its weights
};

struct Cures {
  std::vector<Advice> list;
  std::string remark;  // whether they are enough; empty if that is not known
};

// Those that meet a shortage of this kind, what changes least first.
std::vector<Remedy> remedies_of(Filler filler, const Settings& settings);

// Of a shortage.
Cures cures_of(const Verdict& verdict, const Growth& growth, const Settings& settings);

}  // namespace snug
