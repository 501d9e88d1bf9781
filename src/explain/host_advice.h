#pragma once
// What to change where host memory ran out: RAM, a container's limit, /dev/shm, Windows' page file.

#include <vector>

#include "explain/advice.h"

namespace snug {

void cure_host(std::vector<Advice>& all, const OomMessage& message, const StageFound& stage);

}  // namespace snug
