// The built-in backend has a kernel for every kind that a backend runs, and says by name what it cannot.

#include "kernels/backend.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace snug {
namespace {

TEST(Backend, HasAKernelForEveryKindThatABackendRuns) {
  const kernels::Backend& cpu = kernels::built_in_backend();
  for (const OpKind kind : kOpKinds) {
    const kernels::Kernel* const kernel = cpu.kernel(kind);
    EXPECT_EQ(kernel != nullptr, run_by(kind) == RunBy::backend) << name_of(kind);
    EXPECT_TRUE(kernel == nullptr || kernel->run != nullptr) << name_of(kind);
  }
}

std::string refusal(OpKind kind, const std::vector<OperandView>& operands, const Attributes& attributes = {}) {
  const OpCut cut;
  OpView op(kind, attributes, cut);
  for (const OperandView& operand : operands) op.add(operand);
  try {
    kernels::require(kernels::built_in_backend(), op);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

OperandView tensor(Slot slot, std::array<int64_t, 4> shape) {
  return {.slot = slot, .axes = 4, .shape = shape, .elements = shape[0] * shape[1] * shape[2] * shape[3]};
}

TEST(Backend, RefusesByNameWhatKernelsCannotBeTold) {
  const OperandView q = tensor(Slot::q, {1, 8, 4, 64}), v = tensor(Slot::v, {1, 8, 4, 64});
  EXPECT_EQ(refusal(OpKind::attention, {q, v}), "");
  EXPECT_NE(refusal(OpKind::attention, {q, v, tensor(Slot::bias, {1, 1, 1, 4})}).find("attention sinks"), std::string::npos);
  EXPECT_NE(refusal(OpKind::attention, {q, tensor(Slot::v, {1, 8, 4, 32})}).find("another size"), std::string::npos);
  EXPECT_NE(refusal(OpKind::add_bias, {tensor(Slot::tile_experts, {1, 1, 1, 4})}).find("biases of experts"),
            std::string::npos);
  EXPECT_NE(refusal(OpKind::rope, {}, {.first_column = 64}).find("rotate"), std::string::npos);
  EXPECT_NE(refusal(OpKind::route, {}, {.sigmoid_scores = true}).find("sigmoids"), std::string::npos);
  EXPECT_NE(refusal(OpKind::latent_heads, {}).find("latent_heads"), std::string::npos);
}

TEST(Backend, AModuleThatIsNoneIsRefusedByName) {
  const auto refused = [](const std::string& path) {
    try {
      kernels::open_backend(path);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refused("/nonexistent/backend.so").find("/nonexistent/backend.so"), std::string::npos);
  const auto text = std::filesystem::temp_directory_path() / "snug_no_backend.so";
  std::ofstream(text) << "not a shared object";
  EXPECT_NE(refused(text).find(text.string()), std::string::npos);
  std::filesystem::remove(text);
  EXPECT_NE(refused("libm.so.6").find("exports no snug_backend"), std::string::npos);
}

}  // namespace
}  // namespace snug
