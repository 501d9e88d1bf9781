#pragma once
// Causes that a message's source alone tells, and what can be said where figures are missing. Part of cause.h.

#include "explain/cause.h"

namespace snug {

// Host memory: the source decides.
void explain_host(Diagnosis& diagnosis, const OomMessage& message);

// The device's memory, by a message without the figures that it takes to reckon.
void explain_without_figures(Diagnosis& diagnosis, const OomMessage& message);

// Adds what a tensor of `tried` bytes would be as logits and as attention scores.
void tell_shape(Diagnosis& diagnosis, int64_t tried);

}  // namespace snug
