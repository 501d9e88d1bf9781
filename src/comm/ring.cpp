#include "comm/ring.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>

#include "base/even_part.h"

namespace snug {

namespace {

// One rank's part of something that need not divide evenly.
struct Part {
  size_t begin = 0, size = 0;
};

template <class T>
void add(std::span<const std::byte> from, std::span<std::byte> to) {
  const auto count = from.size() / sizeof(T);
  const T* const a = reinterpret_cast<const T*>(from.data());
  T* const b = reinterpret_cast<T*>(to.data());
  for (size_t i = 0; i < count; ++i) b[i] = a[i] + b[i];
}

void add(DType dtype, std::span<const std::byte> from, std::span<std::byte> to) {
  if (dtype == DType::f32) return add<float>(from, to);
  if (dtype == DType::f64) return add<double>(from, to);
  throw std::logic_error("sums over ranks are of fp32 and fp64");
}

class Ring final : public Communicator {
 public:
  explicit Ring(std::unique_ptr<Channel> channel) : channel_(std::move(channel)) {}

  int64_t rank() const override { return channel_->rank(); }
  int64_t ranks() const override { return channel_->ranks(); }
  int64_t sent_bytes() const override { return sent_; }
  bool fail() noexcept override { return channel_->fail(); }

  void all_reduce(std::span<std::byte> x, DType dtype, std::span<std::byte> staging) override {
    const auto part = [&](int64_t of) { return part_of_sum(x.size(), size_of(dtype), of); };
    sum_parts(x, dtype, staging, part);
    pass_parts(x, part);
  }

  void reduce_scatter(std::span<std::byte> x, DType dtype, std::span<std::byte> out, bool accumulate,
                      std::span<std::byte> staging) override {
    require(x.size(), out.size());
    const auto part = [&](int64_t of) { return Part{static_cast<size_t>(of) * out.size(), out.size()}; };
    sum_parts(x, dtype, staging, part);
    const std::span<std::byte> own = x.subspan(part(rank()).begin, out.size());
    if (accumulate) {
      add(dtype, own, out);
    } else if (own.data() != out.data()) {
      std::copy(own.begin(), own.end(), out.begin());
    }
  }

  void all_gather(std::span<const std::byte> own, std::span<std::byte> out) override {
    require(out.size(), own.size());
    const auto part = [&](int64_t of) { return Part{static_cast<size_t>(of) * own.size(), own.size()}; };
    std::byte* const place = out.data() + part(rank()).begin;
    if (place != own.data()) std::copy(own.begin(), own.end(), place);
    pass_parts(out, part);
  }

  void pass_on(std::span<const std::byte> x, std::span<std::byte> out) override { exchange(x, out); }

  void send(std::span<const std::byte> x) override {
    channel_->exchange(x, {});
    sent_ += static_cast<int64_t>(x.size());
  }
  void receive(std::span<std::byte> x) override { channel_->exchange({}, x); }

  // Twice around: when the second token comes, all have sent the first.
  void barrier() override {
    for (int64_t step = 0; step < 2 * (ranks() - 1); ++step) {
      std::byte token{1};
      channel_->exchange(std::span(&token, 1), std::span(&token, 1));
    }
  }

 private:
  void require(size_t whole, size_t part) const {
    if (whole != part * static_cast<size_t>(ranks())) throw std::logic_error("a part for each rank");
  }

  Part part_of_sum(size_t bytes, int64_t size, int64_t of) const {
    const EvenPart part = even_part(static_cast<int64_t>(bytes) / size, ranks(), of);
    return {static_cast<size_t>(part.begin * size), static_cast<size_t>(part.elements * size)};
  }

  int64_t before(int64_t steps) const { return (rank() - steps % ranks() + ranks()) % ranks(); }

  // After it each rank's own part of x is the sum: that of part p begins at rank p + 1 and ends at rank p.
  template <class PartOf>
  void sum_parts(std::span<std::byte> x, DType dtype, std::span<std::byte> staging, const PartOf& part_of) {
    if (staging.empty()) throw std::logic_error("sums over ranks need staging");
    for (int64_t step = 0; step + 1 < ranks(); ++step) {
      const Part sent = part_of(before(step + 1)), received = part_of(before(step + 2));
      const size_t longest = std::max(sent.size, received.size);
      for (size_t done = 0; done < longest; done += staging.size()) {
        const std::span<std::byte> to = piece(x, sent, done, staging.size()),
                                   from = piece(x, received, done, staging.size());
        const std::span<std::byte> arrived = staging.first(from.size());
        exchange(to, arrived);
        add(dtype, arrived, from);
      }
    }
  }

  // After it every rank has every part, of which it had its own.
  template <class PartOf>
  void pass_parts(std::span<std::byte> x, const PartOf& part_of) {
    for (int64_t step = 0; step + 1 < ranks(); ++step) {
      const Part sent = part_of(before(step)), received = part_of(before(step + 1));
      exchange(x.subspan(sent.begin, sent.size), x.subspan(received.begin, received.size));
    }
  }

  static std::span<std::byte> piece(std::span<std::byte> x, const Part& part, size_t done, size_t most) {
    if (done >= part.size) return {};
    return x.subspan(part.begin + done, std::min(most, part.size - done));
  }

  void exchange(std::span<const std::byte> to_next, std::span<std::byte> from_previous) {
    channel_->exchange(to_next, from_previous);
    sent_ += static_cast<int64_t>(to_next.size());
  }

  std::unique_ptr<Channel> channel_;
  std::atomic<int64_t> sent_ = 0;  // one thread may send while another receives
};

}  // namespace

std::unique_ptr<Communicator> make_ring(std::unique_ptr<Channel> channel) {
  return std::make_unique<Ring>(std::move(channel));
}

}  // namespace snug
