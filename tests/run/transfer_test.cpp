#include "run/transfer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>
#include <stdexcept>
#include <vector>

#include "run/executor.h"
#include "run/in_place.h"

namespace snug {
namespace {

// One tensor of three layers in each home, what the host alone uses, and what an op works in.
struct EveryHome {
  EveryHome() {
    near = made("near", Home::device);
    pinned = made("pinned", Home::pinned);
    host = made("host", Home::host);
    far = made("far", Home::disk);
    room = program.make("room", DType::f32, {4}, Role::temporary);
    scratch = program.make("scratch", DType::f32, {4}, Role::temporary);
    Region step{.name = "step", .section = Section::step};
    step.add(Op{OpKind::load}.writes(Slot::staging, room));
    step.add(Op{OpKind::zero}.writes(Slot::gradient, scratch));
    program.root.add(std::move(step));
  }
  TensorId made(const char* name, Home home) {
    const TensorId id = program.make(name, DType::f32, {1000}, Role::optimizer, Lifetime::run);
    program.tensor(id).layer_stride = 4096;
    program.storage(program.tensor(id).storage).bytes = 3 * 4096;
    program.storage(program.tensor(id).storage).home = home;
    return id;
  }

  Program program;
  TensorId near = kNone, pinned = kNone, host = kNone, far = kNone, room = kNone, scratch = kNone;
};

std::filesystem::path pages() {
  return std::filesystem::temp_directory_path() / ("snug-transfer-" + std::to_string(getpid()));
}

TEST(Transfer, reads_what_was_written_to_a_layer_of_any_home) {
  EveryHome homes;
  const Layout layout = lay_out(homes.program);
  Executor executor(homes.program, layout, pages());
  Transfer& transfer = executor.transfer();
  std::vector<float> numbers(1000), back(1000);
  std::iota(numbers.begin(), numbers.end(), 1.0F);
  for (const TensorId tensor : {homes.near, homes.pinned, homes.host, homes.far}) {
    transfer.clear(homes.program.tensor(tensor).storage);
    transfer.write(tensor, 0, std::span<const float>(numbers), 1);
    transfer.write(tensor, 7, std::span<const float>(numbers).first(2), 2);
    transfer.read(tensor, 0, std::span(back), 1);
    EXPECT_EQ(back, numbers);
    transfer.read(tensor, 6, std::span(back).first(4), 2);
    EXPECT_EQ(std::vector<float>(back.begin(), back.begin() + 4), (std::vector<float>{0, 1, 2, 0}));
    transfer.read(tensor, 0, std::span(back), 0);
    EXPECT_EQ(back, std::vector<float>(1000, 0.0F));
  }
  EXPECT_EQ(InPlace::elements<float>(executor, homes.near, 1)[999], 1000.0F);
}

TEST(Transfer, passes_elements_through_little_room_in_any_order) {
  EveryHome homes;
  const Layout layout = lay_out(homes.program);
  Executor executor(homes.program, layout, pages());
  for (const TensorId tensor : {homes.near, homes.pinned, homes.host, homes.far}) {
    executor.transfer().clear(homes.program.tensor(tensor).storage);
    ElementWriter<float> writer(executor.transfer(), tensor, 2);
    for (int64_t i = 0; i < 1000; ++i)
      if (i % 100 != 50) writer.put(i, static_cast<float>(i));
    writer.put(3, -1.0F);
    writer.flush();
    std::vector<float> back(1000);
    executor.transfer().read(tensor, 0, std::span(back), 2);
    for (size_t i = 0; i < 1000; ++i) EXPECT_EQ(back[i], i == 3 ? -1.0F : i % 100 == 50 ? 0.0F : static_cast<float>(i));
    executor.transfer().write(tensor, 0, std::span<const float>(back));
    ElementReader<float> reader(executor.transfer(), tensor);
    for (const int64_t i : {0, 1, 600, 999, 5}) EXPECT_EQ(reader.at(i), back[static_cast<size_t>(i)]);
  }
}

TEST(Transfer, refuses_what_lies_beyond_a_tensor_or_is_of_another_size) {
  EveryHome homes;
  const Layout layout = lay_out(homes.program);
  Executor executor(homes.program, layout, pages());
  Transfer& transfer = executor.transfer();
  std::vector<float> numbers(1001);
  std::vector<double> wide(2);
  EXPECT_THROW(transfer.read(homes.near, 0, std::span(numbers)), std::logic_error);
  EXPECT_THROW(transfer.write(homes.far, 1000, std::span<const float>(numbers).first(1)), std::logic_error);
  EXPECT_THROW(transfer.read(homes.near, -1, std::span(numbers).first(1)), std::logic_error);
  EXPECT_THROW(transfer.read(homes.near, 0, std::span(wide)), std::logic_error);
}

TEST(Transfer, gives_the_host_no_room_that_an_op_works_in) {
  EveryHome homes;
  const Layout layout = lay_out(homes.program);
  Executor executor(homes.program, layout, pages());
  EXPECT_EQ(executor.transfer().host_room<float>(homes.room).size(), 4U);
  EXPECT_TRUE(executor.transfer().host_room<std::byte>(kNone).empty());
  EXPECT_THROW(executor.transfer().host_room<float>(homes.scratch), std::logic_error);
}

}  // namespace
}  // namespace snug
