#include "run/transfer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "program/compile.h"
#include "program/support_tiny.h"
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

// A model whose sizes divide by nothing, in 4 bits beside an adapter, or trained in full with states in blocks.
std::vector<Program> spread_programs(int64_t ranks) {
  ModelSpec spec = testing::uneven_decoder();
  spec.hidden_size = 64;  // quantized in whole blocks
  Recipe full, adapter;
  full.seq_len = adapter.seq_len = 16;
  full.parallel = adapter.parallel = {.ranks = ranks, .zero_stage = 3};
  full.method = Method::full;
  full.bf16 = true;
  full.optim = Optimizer::adamw_8bit;
  adapter.quantize.in_4bit = true;
  adapter.lora.target_modules = {"all-linear"};
  std::vector<Program> programs;
  programs.push_back(compile(spec, full));
  programs.push_back(compile(spec, adapter));
  return programs;
}

// What one part writes and reads of a view is what the others lack, and nothing else is touched.
TEST(Transfer, parts_of_what_is_spread_make_the_whole_and_each_keeps_its_own) {
  for (const int64_t ranks : {2, 3, 8})
    for (const Program& program : spread_programs(ranks)) {
      const Layout layout = lay_out(program);
      std::vector<std::unique_ptr<Homes>> homes;
      std::vector<Transfer> parts;
      for (int64_t part = 0; part < ranks; ++part) {
        homes.push_back(std::make_unique<Homes>(layout, std::filesystem::path()));
        parts.emplace_back(program, layout, *homes.back()).set_rank(part);
      }
      int views = 0;
      const auto check = [&](TensorId tensor, const Parameter& parameter) {
        if (tensor == kNone || !program.tensor(tensor).spread) return;
        ++views;
        for (int64_t layer = parameter.first_layer; layer < parameter.end_layer(program.layers); ++layer) {
          const int64_t bytes = program.tensor(tensor).bytes();
          std::vector<std::byte> whole(static_cast<size_t>(bytes)), back(whole.size());
          for (size_t i = 0; i < whole.size(); ++i)
            whole[i] = static_cast<std::byte>(i * 7 + static_cast<size_t>(layer + tensor));
          int64_t next = 0;
          for (Transfer& part : parts) {
            part.write_bytes(tensor, layer, 0, whole);
            const auto [begin, end] = part.held_bytes(tensor, layer);
            if (begin == end) continue;
            ASSERT_EQ(begin, next) << program.tensor(tensor).name;
            next = end;
            part.read_bytes(tensor, layer, begin,
                            std::span(back).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
          }
          ASSERT_EQ(next, bytes) << program.tensor(tensor).name;
          ASSERT_EQ(back, whole) << program.tensor(tensor).name;
        }
      };
      const auto each = [&](const auto& visit) {
        for (const Weight& weight : program.weights) {
          visit(weight.tensor, weight.parameter);
          if (weight.trainable) visit(weight.gradient, weight.parameter);
          for (const OptimizerState& state : weight.states) visit(state.tensor, weight.parameter);
          if (weight.quantization) visit(weight.quantization->absmax, weight.parameter);
        }
      };
      each(check);
      EXPECT_GT(views, 20);
      const TensorId first = program.weights.front().tensor;  // its last byte is another rank's
      std::byte one{};
      EXPECT_THROW(parts[0].read_bytes(first, 0, program.tensor(first).bytes() - 1, std::span(&one, 1)), std::logic_error);
    }
}

}  // namespace
}  // namespace snug
