#pragma once
// Numbers of any storage type as fp64, one at a time.

#include "base/bfloat16.h"
#include "base/float16.h"
#include "kernels/operands.h"

namespace snug::kernels::fp64 {

// A number as an operand of a dtype that is stored keeps it.
double rounded(double value, DType dtype);

// Reads a matrix; quantized ones as the numbers that their codes stand for.
class Reader {
 public:
  explicit Reader(const In& in) : in_(in) {}
  double operator[](int64_t i) const;

 private:
  double quantized(int64_t i) const;
  const In in_;
};

// Reads and writes one.
class Writer {
 public:
  explicit Writer(const Out& out) : out_(out) {}
  double operator[](int64_t i) const { return Reader({out_.data, out_.dtype})[i]; }
  void set(int64_t i, double value) const;

 private:
  const Out out_;
};

inline double& scalar(double* scalars, Scalar which) { return scalars[static_cast<size_t>(which)]; }
inline double scalar(const double* scalars, Scalar which) { return scalars[static_cast<size_t>(which)]; }

}  // namespace snug::kernels::fp64
