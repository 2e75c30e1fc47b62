// A Subject for tests: attention as kernels compute it, in f32, tile by tile with a running
// maximum, and on demand in splits that are merged. It proves that the bounds leave room for honest
// rounding. Host code, single-threaded, in no way a model of quick code.
#pragma once
#include "reference/subject.hpp"

namespace attest {

/// Keys are visited in tiles of `tile`. Declines nothing; offers every operation.
Subject tiled_subject(Index tile);

}  // namespace attest
