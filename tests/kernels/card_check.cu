// The kernels of kernels/cuda on a card, against fp64 on the host; then what the card's memory and bus give, as the ceiling.
//   nvcc -std=c++20 -O3 -arch=native -I src -o card_check tests/kernels/card_check.cu src/kernels/cuda/*.cu && ./card_check
// Exits with 1 where a kernel is wrong, with 77 where there is no card.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/ops/rms_norm.h"
#include "kernels/rows/lanes.h"

namespace snug::kernels {
void rms_norm(const RmsNorm& op);  // of kernels/cuda
}

namespace {

using namespace snug;
using kernels::Bf16;

void ask(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "card_check: %s: %s\n", what, cudaGetErrorString(code));
  std::exit(code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver ? 77 : 1);
}

template <class T>
class OnCard {
 public:
  explicit OnCard(size_t count) : count_(count) { ask(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc"); }
  explicit OnCard(const std::vector<T>& values) : OnCard(values.size()) {
    ask(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "copy to the card");
  }
  OnCard(const OnCard&) = delete;
  OnCard& operator=(const OnCard&) = delete;
  ~OnCard() { cudaFree(data_); }
  T* data() const { return data_; }
  void poison() { ask(cudaMemset(data_, 0xff, count_ * sizeof(T)), "cudaMemset"); }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    ask(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "copy from the card");
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

float value(float x) { return x; }
float value(Bf16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}
void put(float x, float& to) { to = x; }
void put(float x, Bf16& to) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  to.bits = static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}
DType dtype_of(float) { return DType::f32; }
DType dtype_of(Bf16) { return DType::bf16; }

template <class T>
std::vector<T> random_values(size_t count, std::mt19937& draw) {
  std::normal_distribution<float> normal;
  std::vector<T> values(count);
  for (T& v : values) put(normal(draw), v);
  return values;
}

// Greatest error in units of the out type's last place.
template <class X, class Y>
double error_of(int64_t rows, int64_t cols, std::mt19937& draw) {
  const auto x = random_values<X>(static_cast<size_t>(rows * cols), draw);
  const auto weight = random_values<X>(static_cast<size_t>(cols), draw);
  const OnCard<X> x_there(x), weight_there(weight);
  OnCard<Y> out(x.size());
  OnCard<float> rstd(static_cast<size_t>(rows));
  out.poison();
  rstd.poison();
  kernels::rms_norm({.x = {x_there.data(), dtype_of(X())},
                     .weight = {weight_there.data(), dtype_of(X())},
                     .out = {out.data(), dtype_of(Y())},
                     .rstd = rstd.data(),
                     .rows = rows,
                     .cols = cols,
                     .eps = 1e-5F,
                     .weight_offset = 1});
  ask(cudaGetLastError(), "rms_norm");
  ask(cudaDeviceSynchronize(), "rms_norm");
  const auto got = out.read();
  const auto scale_got = rstd.read();
  const int digits = sizeof(Y) == 2 ? 8 : 24;
  double worst = 0;
  for (int64_t row = 0; row < rows; ++row) {
    double squares = 0;
    for (int64_t i = 0; i < cols; ++i)
      squares += std::pow(static_cast<double>(value(x[static_cast<size_t>(row * cols + i)])), 2);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(cols) + 1e-5F);
    const double off = std::abs(static_cast<double>(scale_got[static_cast<size_t>(row)]) / scale - 1) * std::exp2(23);
    worst = std::max(worst, std::isnan(off) ? HUGE_VAL : off / 8);  // a sum of a row: some units more
    for (int64_t i = 0; i < cols; ++i) {
      const auto at = static_cast<size_t>(row * cols + i);
      const double want = value(x[at]) * scale * (1 + static_cast<double>(value(weight[static_cast<size_t>(i)])));
      const double unit = std::exp2(std::floor(std::log2(std::max(std::abs(want), 1e-30))) - digits + 1);
      const double error = std::abs(value(got[at]) - want) / unit;
      worst = std::max(worst, std::isnan(error) ? HUGE_VAL : error);
    }
  }
  return worst;
}

template <class Work>
double milliseconds(Work work) {
  cudaEvent_t begin, end;  // a process's worth of them
  ask(cudaEventCreate(&begin), "event");
  ask(cudaEventCreate(&end), "event");
  std::vector<float> times;
  for (int i = 0; i < 23; ++i) {
    ask(cudaEventRecord(begin), "event");
    work();
    ask(cudaEventRecord(end), "event");
    ask(cudaEventSynchronize(end), "event");
    float ms = 0;
    ask(cudaEventElapsedTime(&ms, begin, end), "event");
    if (i >= 3) times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void tell_rates(std::mt19937& draw) {
  constexpr int64_t kRows = 65536, kCols = 4096;
  constexpr size_t kBytes = 2 * kRows * kCols;
  const OnCard<Bf16> x(random_values<Bf16>(kRows * kCols, draw)), weight(random_values<Bf16>(kCols, draw));
  OnCard<Bf16> out(kRows * kCols);
  OnCard<float> rstd(kRows);
  const double norm = milliseconds([&] {
    kernels::rms_norm({.x = {x.data(), DType::bf16},
                       .weight = {weight.data(), DType::bf16},
                       .out = {out.data(), DType::bf16},
                       .rstd = rstd.data(),
                       .rows = kRows,
                       .cols = kCols,
                       .eps = 1e-5F});
  });
  const double copy = milliseconds([&] { cudaMemcpyAsync(out.data(), x.data(), kBytes, cudaMemcpyDeviceToDevice); });
  std::printf(
      "rms_norm, %ld x %ld bf16: %.3f ms; a copy of the same bytes %.3f ms (%.0f GB/s read and written): %.2f of the "
      "ceiling\n",
      static_cast<long>(kRows), static_cast<long>(kCols), norm, copy, 2 * kBytes / copy / 1e6, copy / norm);
  std::vector<char> pageable(kBytes, 1);
  void* pinned = nullptr;
  ask(cudaMallocHost(&pinned, kBytes), "cudaMallocHost");
  std::memset(pinned, 1, kBytes);
  for (void* host : {pinned, static_cast<void*>(pageable.data())}) {
    const double up = milliseconds([&] { cudaMemcpyAsync(out.data(), host, kBytes, cudaMemcpyHostToDevice); });
    const double down = milliseconds([&] { cudaMemcpyAsync(host, out.data(), kBytes, cudaMemcpyDeviceToHost); });
    std::printf("%s host memory: %.1f GB/s to the card, %.1f GB/s from it\n", host == pinned ? "pinned" : "pageable",
                kBytes / up / 1e6, kBytes / down / 1e6);
  }
  cudaFreeHost(pinned);
}

}  // namespace

int main() {
  cudaDeviceProp card;
  ask(cudaGetDeviceProperties(&card, 0), "cudaGetDeviceProperties");
  std::printf("%s, %d multiprocessors, %zu bytes\n", card.name, card.multiProcessorCount, card.totalGlobalMem);
  std::mt19937 draw(std::random_device{}());
  double worst[4] = {};
  for (const int64_t rows : {1, 3, 64, 1025}) {
    for (const int64_t cols : {1, 31, 32, 33, 577, 2048, 4096, 8191}) {
      worst[0] = std::max(worst[0], error_of<float, float>(rows, cols, draw));
      worst[1] = std::max(worst[1], error_of<float, Bf16>(rows, cols, draw));
      worst[2] = std::max(worst[2], error_of<Bf16, float>(rows, cols, draw));
      worst[3] = std::max(worst[3], error_of<Bf16, Bf16>(rows, cols, draw));
    }
  }
  std::printf("rms_norm against fp64, units in the last place: fp32 %.2f, fp32 to bf16 %.2f, bf16 to fp32 %.2f, bf16 %.2f\n",
              worst[0], worst[1], worst[2], worst[3]);
  tell_rates(draw);
  const bool right = worst[0] < 8 && worst[1] < 1 && worst[2] < 8 && worst[3] < 1;
  std::puts(right ? "all right" : "WRONG");
  return right ? 0 : 1;
}
