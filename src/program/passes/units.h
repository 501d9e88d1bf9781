#pragma once
// Views of flat buffers that ranks cut among them: a unit's whole, a rank's own part, as collectives read and
// write them.

#include "program/program.h"

namespace snug {

// This rank's part of a unit of the buffer that `view` lies in, in the layer whose turn it is.
TensorId own_part(Program& program, TensorId view, size_t unit);
// All of a unit of a buffer that every rank holds whole.
TensorId whole_unit(Program& program, TensorId view, size_t unit);

// The loop over the unit's layers, or a region that runs once.
Region unit_loop(const Unit& unit, const char* name, Stage stage);

}  // namespace snug
