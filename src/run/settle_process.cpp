#include "run/settle_process.h"

#include <malloc.h>
#include <pthread.h>

#include "kernels/backend.h"

namespace snug {

void settle_process(int32_t threads) {
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) == 0) {
    pthread_attr_setstacksize(&attributes, size_t{1} << 20);
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
  }
  kernels::built_in_backend().start_threads(threads);
}

}  // namespace snug
