// Collectives against what they are said to compute, by ranks that are threads or processes of their own over one piece of
// shared memory.

#include "comm/ring.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/agree.h"
#include "comm/local/shared_memory.h"
#include "comm/world.h"

namespace snug::testing {

namespace {

using Work = std::function<void(Communicator&)>;

// Memory for so many ranks, as a file would give it.
class Shared {
 public:
  explicit Shared(int64_t ranks) : bytes_(static_cast<size_t>(shared_bytes(ranks))), data_(new_pages(bytes_)) {}
  std::span<std::byte> bytes() const { return {data_.get(), bytes_}; }

 private:
  static std::unique_ptr<std::byte[]> new_pages(size_t bytes) { return std::make_unique<std::byte[]>(bytes); }
  size_t bytes_;
  std::unique_ptr<std::byte[]> data_;
};

// Each rank in a thread of its own; what one throws is thrown here.
void run_ranks(int64_t ranks, const Work& work) {
  const Shared shared(ranks);
  std::vector<std::exception_ptr> thrown(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const auto ring = make_ring(make_mailbox_channel(shared.bytes(), {ranks, ranks}, RankGroup::all, rank));
      try {
        work(*ring);
        ring->barrier();
      } catch (...) {
        ring->fail();
        thrown[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : thrown)
    if (error) std::rethrow_exception(error);
}

std::vector<float> numbers(int64_t rank, size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// In fp64, whatever the order.
std::vector<double> sums(int64_t ranks, size_t count) {
  std::vector<double> all(count);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const std::vector<float> values = numbers(rank, count);
    for (size_t i = 0; i < count; ++i) all[i] += values[i];
  }
  return all;
}

double tolerance(int64_t ranks) { return 4e-7 * static_cast<double>(ranks) * std::sqrt(static_cast<double>(ranks)); }

template <class T>
std::span<std::byte> bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

class Ring : public ::testing::TestWithParam<int64_t> {};

TEST_P(Ring, all_reduce_sums_whatever_the_size_and_every_rank_has_the_same_bits) {
  const int64_t ranks = GetParam();
  for (const size_t count : {size_t{1}, size_t{2}, size_t{7}, size_t{1000}, size_t{100'003}}) {
    const std::vector<double> truth = sums(ranks, count);
    std::vector<std::vector<float>> result(static_cast<size_t>(ranks));
    run_ranks(ranks, [&](Communicator& ring) {
      std::vector<float> x = numbers(ring.rank(), count), staging(1 + count / 5);
      ring.all_reduce(bytes_of(x), DType::f32, bytes_of(staging));
      result[static_cast<size_t>(ring.rank())] = x;
    });
    for (size_t i = 0; i < count; ++i) ASSERT_NEAR(result[0][i], truth[i], tolerance(ranks)) << count << " numbers, " << i;
    for (const std::vector<float>& other : result) EXPECT_EQ(other, result[0]) << count;
  }
}

TEST_P(Ring, reduce_scatter_gives_each_rank_its_part_in_place_apart_or_added) {
  const int64_t ranks = GetParam();
  constexpr size_t kPart = 40'000;
  const std::vector<double> truth = sums(ranks, kPart * static_cast<size_t>(ranks));
  run_ranks(ranks, [&](Communicator& ring) {
    const auto begin = kPart * static_cast<size_t>(ring.rank());
    for (const int way : {0, 1, 2}) {
      std::vector<float> x = numbers(ring.rank(), kPart * static_cast<size_t>(ranks)), apart(kPart, 3.0F), staging(1024);
      const std::span<float> out = way == 0 ? std::span(x).subspan(begin, kPart) : std::span(apart);
      ring.reduce_scatter(bytes_of(x), DType::f32, std::as_writable_bytes(out), way == 2, bytes_of(staging));
      for (size_t i = 0; i < kPart; ++i)
        ASSERT_NEAR(out[i], truth[begin + i] + (way == 2 ? 3 : 0), tolerance(ranks) + 1e-6) << way << " " << i;
    }
  });
}

TEST_P(Ring, all_gather_has_the_parts_in_the_order_of_ranks) {
  run_ranks(GetParam(), [&](Communicator& ring) {
    const std::vector<int64_t> all = all_ranks(ring, 100 + ring.rank());
    for (int64_t rank = 0; rank < ring.ranks(); ++rank) EXPECT_EQ(all[static_cast<size_t>(rank)], 100 + rank);
    EXPECT_EQ(of_first_rank(ring, ring.rank() == 0 ? "checkpoint-7" : "another, longer name"), "checkpoint-7");
    EXPECT_EQ(of_first_rank(ring, ""), "");
    double values[] = {1.5, static_cast<double>(ring.rank())};
    sum_over_ranks(ring, values);
    EXPECT_EQ(values[0], 1.5 * static_cast<double>(ring.ranks()));
    EXPECT_EQ(values[1], static_cast<double>(ring.ranks() * (ring.ranks() - 1) / 2));
  });
}

TEST_P(Ring, passes_on_what_each_has_until_it_comes_home) {
  run_ranks(GetParam(), [&](Communicator& ring) {
    constexpr size_t kCount = 70'001;
    std::vector<float> block = numbers(ring.rank(), kCount), next(kCount);
    for (int64_t step = 1; step <= ring.ranks(); ++step) {
      ring.pass_on(bytes_of(block), bytes_of(next));
      std::swap(block, next);
      ASSERT_EQ(block, numbers((ring.rank() - step + ring.ranks()) % ring.ranks(), kCount)) << step;
    }
    EXPECT_EQ(ring.sent_bytes(), ring.ranks() * static_cast<int64_t>(kCount * sizeof(float)));
  });
}

// What a rank sends: all but one of the parts, in a sum twice.
TEST_P(Ring, sends_each_byte_that_another_lacks_once) {
  run_ranks(GetParam(), [&](Communicator& ring) {
    const int64_t others = ring.ranks() - 1;
    std::vector<float> x(static_cast<size_t>(1024 * ring.ranks())), staging(100), part(1024);
    ring.all_reduce(bytes_of(x), DType::f32, bytes_of(staging));
    EXPECT_EQ(ring.sent_bytes(), 2 * others * 4096);
    ring.reduce_scatter(bytes_of(x), DType::f32, bytes_of(part), false, bytes_of(staging));
    EXPECT_EQ(ring.sent_bytes(), 3 * others * 4096);
    ring.all_gather(bytes_of(part), bytes_of(x));
    EXPECT_EQ(ring.sent_bytes(), 4 * others * 4096);
  });
}

INSTANTIATE_TEST_SUITE_P(of, Ring, ::testing::Values(2, 3, 4, 8));

TEST(RingOfSeveral, a_rank_that_fails_takes_all_others_along_at_once) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<int> lost(5);
  EXPECT_THROW(run_ranks(5,
                         [&](Communicator& ring) {
                           if (ring.rank() == 3) throw Error("the disk is full");
                           std::vector<float> x(100'000), staging(1000);
                           try {
                             for (;;) ring.all_reduce(bytes_of(x), DType::f32, bytes_of(staging));
                           } catch (const RankLost& error) {
                             EXPECT_FALSE(error.tells) << error.what();
                             ++lost[static_cast<size_t>(ring.rank())];
                             throw;
                           }
                         }),
               Error);
  EXPECT_EQ(lost, (std::vector<int>{1, 1, 1, 0, 1}));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(RingOfSeveral, ranks_that_differ_in_what_they_send_are_told) {
  EXPECT_THROW(run_ranks(2,
                         [](Communicator& ring) {
                           std::vector<float> part(ring.rank() == 0 ? 10 : 20), all(2 * part.size());
                           ring.all_gather(bytes_of(part), bytes_of(all));
                         }),
               Error);
}

// A rank that is a process of its own; returns its exit code: 0 done, 7 it lost another and tells of it, 8 without telling.
template <class WorkOfRank>
pid_t start_rank(int fd, int64_t rank, int64_t ranks, const WorkOfRank& work) {
  const pid_t child = fork();
  if (child != 0) return child;
  int code = 0;
  try {
    const auto ring = make_ring(open_shared_memory(fd, {ranks, ranks}, RankGroup::all, rank));
    ring->barrier();
    work(*ring);
  } catch (const RankLost& lost) {
    code = lost.tells ? 7 : 8;
  } catch (...) {
    code = 9;
  }
  _exit(code);
}

TEST(RingOfProcesses, one_that_is_killed_is_told_of_once) {
  constexpr int64_t kRanks = 4;
  const UniqueFd shared = make_shared_memory(kRanks);
  std::vector<pid_t> children;
  for (int64_t rank = 0; rank < kRanks; ++rank)
    children.push_back(start_rank(shared.get(), rank, kRanks, [](Communicator& ring) {
      std::vector<float> x(1000), staging(100);
      for (;;) ring.all_reduce(bytes_of(x), DType::f32, bytes_of(staging));
    }));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  kill(children[2], SIGKILL);
  int telling = 0, silent = 0;
  for (int64_t rank : {2, 0, 1, 3}) {
    int status = 0;
    waitpid(children[static_cast<size_t>(rank)], &status, 0);
    if (rank == 2) continue;
    ASSERT_TRUE(WIFEXITED(status)) << rank;
    telling += static_cast<int>(WEXITSTATUS(status) == 7);
    silent += static_cast<int>(WEXITSTATUS(status) == 8);
  }
  EXPECT_EQ(telling, 1);
  EXPECT_EQ(silent, 2);
}

TEST(RingOfProcesses, ranks_of_a_launcher_meet_by_its_job) {
  constexpr int64_t kRanks = 3;
  std::vector<pid_t> children;
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    setenv("RANK", std::to_string(rank).c_str(), 1);
    setenv("WORLD_SIZE", "3", 1);
    setenv("LOCAL_WORLD_SIZE", "3", 1);
    setenv("MASTER_PORT", std::to_string(getppid()).c_str(), 1);
    const std::optional<World> world = launched_world();
    if (!world || world->launcher != "torchrun" || world->ranks != kRanks) _exit(1);
    const auto last = [&] { return all_ranks(meet(*world, {kRanks, kRanks})->all(), rank).back(); };  // and leaves in order
    _exit(last() == kRanks - 1 ? 0 : 2);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST(LaunchedWorld, is_what_the_launcher_says_or_a_mistake_that_is_told) {
  EXPECT_FALSE(launched_world().has_value());
  setenv("OMPI_COMM_WORLD_RANK", "2", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
  const World world = launched_world().value();
  EXPECT_EQ(world.launcher, "mpirun");
  EXPECT_EQ(world.rank, 2);
  EXPECT_EQ(world.local_ranks, 2);
  EXPECT_THROW(meet(world, {4, 4}), Error);  // some are on another machine
  setenv("OMPI_COMM_WORLD_RANK", "4", 1);
  EXPECT_THROW(launched_world(), Error);
  setenv("OMPI_COMM_WORLD_RANK", "two", 1);
  EXPECT_THROW(launched_world(), Error);
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}) unsetenv(name);
}

}  // namespace

}  // namespace snug::testing
