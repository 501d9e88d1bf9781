// Read once for each instruction set (cpu/highway_lanes.h): kernels that stand in one unit share it.
#if defined(SNUG_KERNELS_ROWS_ADD_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SNUG_KERNELS_ROWS_ADD_H
#undef SNUG_KERNELS_ROWS_ADD_H
#else
#define SNUG_KERNELS_ROWS_ADD_H
#endif

// out = a + b; out may be a's or b's memory.
template <class Lanes, class A, class B, class Y>
SNUG_ROW void add_row(Lanes lanes, const A* a, const B* b, Y* out, int64_t cols) {
  for (int64_t i = 0; i < cols; i += lanes.width())
    lanes.store(lanes.add(lanes.load(a, i, cols), lanes.load(b, i, cols)), out, i, cols);
}

template <class Lanes, class X, class Y>
SNUG_ROW void copy_row(Lanes lanes, const X* x, Y* out, int64_t cols) {
  for (int64_t i = 0; i < cols; i += lanes.width()) lanes.store(lanes.load(x, i, cols), out, i, cols);
}

// out = scale * x.
template <class Lanes, class X, class Y>
SNUG_ROW void scale_row(Lanes lanes, const X* x, float scale, Y* out, int64_t cols) {
  const auto factor = lanes.set(scale);
  for (int64_t i = 0; i < cols; i += lanes.width()) lanes.store(lanes.mul(factor, lanes.load(x, i, cols)), out, i, cols);
}

// sum += scale * x.
template <class Lanes, class X>
SNUG_ROW void add_scaled_row(Lanes lanes, const X* x, float scale, float* sum, int64_t cols) {
  const auto factor = lanes.set(scale);
  for (int64_t i = 0; i < cols; i += lanes.width())
    lanes.store(lanes.fma(factor, lanes.load(x, i, cols), lanes.load(sum, i, cols)), sum, i, cols);
}

#endif
