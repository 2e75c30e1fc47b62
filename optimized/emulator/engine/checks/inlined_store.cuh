// A store that is inlined into tiles.cu from another file: findings have to name who called it.
#pragma once

__device__ __forceinline__ void store_elsewhere(int* to, int value) {
  *to = value;
}
