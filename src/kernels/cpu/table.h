#pragma once
// The CPU's entries in the table of kernels: each is defined beside its kernel.

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/product.h"
#include "kernels/entries.h"

namespace snug::kernels::cpu {

class CpuSession : public Session {
 public:
  int64_t products() const override { return made.count(); }
  Products made;
};

// Of a kernel that needs nothing made ahead.
template <class Args, void (*kRun)(const Args&)>
constexpr Kernel plain() {
  return {.missing = kernels::missing<Args>, .run = [](Session&, const OpView& op) { kRun(bind<Args>(op)); }};
}

inline Products& made(Session& session) { return static_cast<CpuSession&>(session).made; }

// Of one that multiplies by Products.
template <class Args, void (*kPrepare)(const Args&, Products&), void (*kRun)(const Args&, Products&)>
constexpr Kernel with_products() {
  return {.missing = kernels::missing<Args>,
          .prepare = [](Session& session, const OpView& op) { kPrepare(bind<Args>(op), made(session)); },
          .run = [](Session& session, const OpView& op) { kRun(bind<Args>(op), made(session)); }};
}

SNUG_ENTRIES

}  // namespace snug::kernels::cpu
