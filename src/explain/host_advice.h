#pragma once
// What to change where host memory ran out: RAM, a container's limit, /dev/shm, Windows' page file.

#include <vector>

#include "explain/advice.h"

namespace snug {

// One of the processes that prepare data was killed.
bool is_death_of_worker(const OomMessage& message);

void cure_host(std::vector<Advice>& all, const OomMessage& message, const StageFound& stage);

}  // namespace snug
