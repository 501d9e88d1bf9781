#pragma once
// Advice is given in the words of transformers' settings, which most trainers share. A program that its frames show to be
// Lightning's, or a loop of the user's own, is told the same in words that it has.

#include <vector>

#include "explain/advice.h"
#include "torch/traceback.h"

namespace snug {

enum class Trainer { transformers, lightning, own_loop };

// transformers where the frames do not tell.
Trainer trainer_of(const Traceback* traceback);

void put_in_words_of(Trainer trainer, std::vector<Advice>& advice);

}  // namespace snug
