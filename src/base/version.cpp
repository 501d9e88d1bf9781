#include "base/version.h"

namespace snug {

const char* const kVersion = SNUG_VERSION;

}  // namespace snug
