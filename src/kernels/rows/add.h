// out = a + b; out may be a's or b's memory. Also the copy of a row (widened or narrowed) and the sum into one.
template <class Lanes, class A, class B, class Y>
SNUG_ROW void add_row(Lanes lanes, const A* a, const B* b, Y* out, int64_t cols) {
  for (int64_t i = 0; i < cols; i += lanes.width())
    lanes.store(lanes.add(lanes.load(a, i, cols), lanes.load(b, i, cols)), out, i, cols);
}

template <class Lanes, class X, class Y>
SNUG_ROW void copy_row(Lanes lanes, const X* x, Y* out, int64_t cols) {
  for (int64_t i = 0; i < cols; i += lanes.width()) lanes.store(lanes.load(x, i, cols), out, i, cols);
}
