#pragma once
// oneDNN leaves the code it generates writable: 256 KiB and more of private, writable memory for each kernel, little of it
// touched. Sealed (read and execute only) it no longer counts as data, and cannot be written by mistake.

namespace snug::kernels {

// Makes every anonymous mapping of this process that is both writable and executable read-only.
void seal_generated_code();

}  // namespace snug::kernels
