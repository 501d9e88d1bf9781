#pragma once
// Servers that share a device out themselves: vLLM, SGLang, llama.cpp. Their messages tell of their own pools, and their
// settings are what to change.

#include <vector>

#include "explain/advice.h"
#include "explain/cause.h"

namespace snug {

// True for a message of a server's own; of a start of vLLM that finds the device taken, too.
bool is_of_server(OomSource source);

void explain_server(Diagnosis& diagnosis, const OomMessage& message);

// Where the server's own pool is short; not where other processes hold the device.
void cure_server(std::vector<Advice>& all, const OomMessage& message);

// What the message says that the server was doing.
TorchStage stage_of_server(const OomMessage& message);

}  // namespace snug
