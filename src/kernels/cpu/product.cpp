#include "kernels/cpu/product.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <string_view>

#include "base/error.h"
#include "kernels/cpu/matmul_plan.h"
#include "kernels/cpu/panel_product.h"
#include "kernels/cpu/seal_code.h"
#include "kernels/cpu/threads.h"

namespace snug::kernels {

class Product {
 public:
  ProductKey shape;
  int64_t bytes = 0;  // of scratch
  bool in_panels = false;
  dnnl::matmul primitive{};  // these are oneDNN's alone
  dnnl::memory a{}, b{}, c{}, scratch{};
};

namespace {

const dnnl::engine& engine() {
  static const dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

const dnnl::stream& stream() {
  static const dnnl::stream instance(engine());
  return instance;
}

dnnl::memory::format_tag tag_of(Layout layout) {
  switch (layout) {
    case Layout::plain: break;
    case Layout::transposed: return dnnl::memory::format_tag::ba;
    case Layout::packed: return dnnl::memory::format_tag::BA16a64b;
  }
  return dnnl::memory::format_tag::ab;
}

dnnl::matmul::primitive_desc describe(const ProductKey& shape) {
  using dnnl::memory;
  const memory::desc a({shape.m, shape.k}, memory::data_type::f32, memory::format_tag::ab);
  const memory::desc b({shape.k, shape.n}, memory::data_type::f32, tag_of(shape.b));
  const memory::desc c({shape.m, shape.n}, memory::data_type::f32, memory::format_tag::ab);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (shape.scale != 1.0F) attributes.set_output_scales(0, {shape.scale});
  if (shape.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
  }
  return {dnnl::matmul::desc(a, b, c), attributes, engine()};
}

// oneDNN splits a primitive's work when it is created, over the threads it could use then.
Product create(const ProductKey& shape) {
  if (!has_brgemm()) return {.shape = shape, .bytes = panel_scratch_bytes(shape), .in_panels = true};
  const ThreadLimit limit(shape.threads);
  const auto description = describe(shape);
  const auto empty = [&](const dnnl::memory::desc& of) { return dnnl::memory(of, engine(), DNNL_MEMORY_NONE); };
  return {.shape = shape,
          .bytes = static_cast<int64_t>(description.scratchpad_desc().get_size()),
          .primitive = dnnl::matmul(description),
          .a = empty(description.src_desc()),
          .b = empty(description.weights_desc()),
          .c = empty(description.dst_desc()),
          .scratch = empty(description.scratchpad_desc())};
}

}  // namespace

Products::Products() : plans_(std::make_unique<MatmulPlans>()) {}
Products::~Products() = default;

Product& Products::of(const ProductKey& shape) {
  const auto found = products_.find(shape);
  if (found != products_.end()) return found->second;
  try {
    const CodeSeal code;
    Product& made = products_.emplace(shape, create(shape)).first->second;
    code.seal();
    return made;
  } catch (const dnnl::error& error) {
    throw Error(std::string("oneDNN cannot multiply: ") + error.what(),
                std::to_string(shape.m) + " x " + std::to_string(shape.n) + " x " + std::to_string(shape.k));
  }
}

int64_t scratch_bytes(const Product& product) { return product.bytes; }

// The C calls underneath take their arguments from the stack; the C++ ones would build a map.
void run(Product& product, const float* a, const float* b, float* c, void* scratch) {
  if (product.in_panels) return panel_product(product.shape, a, b, c, static_cast<float*>(scratch));
  const auto set = [](dnnl::memory& memory, const void* data) {
    return dnnl_memory_set_data_handle(memory.get(), const_cast<void*>(data)) == dnnl_success;
  };
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, product.a.get()},
                                       {DNNL_ARG_WEIGHTS, product.b.get()},
                                       {DNNL_ARG_DST, product.c.get()},
                                       {DNNL_ARG_SCRATCHPAD, product.scratch.get()}};
  const bool done = set(product.a, a) && set(product.b, b) && set(product.c, c) && set(product.scratch, scratch) &&
                    dnnl_primitive_execute(product.primitive.get(), stream().get(), 4, arguments) == dnnl_success;
  if (!done) throw Error("oneDNN failed in a matrix product");
}

bool has_brgemm() {
  static const bool has = [] {
    try {
      const auto description = describe({.m = 64, .n = 64, .k = 64, .b = Layout::packed});
      return std::string_view(description.impl_info_str()).starts_with("brg");
    } catch (const dnnl::error&) {
      return false;
    }
  }();
  return has;
}

}  // namespace snug::kernels
