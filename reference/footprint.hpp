// How many bytes a KV cache takes: exact in integers, with the formula written out.
// It knows nothing of pages, padding or allocators: this is what the numbers themselves need.
#pragma once
#include <cstdint>
#include <string>

#include "reference/problem.hpp"

namespace attest {

struct CacheShape {
  Index layers = 1;
  Index num_heads_kv = 1;
  Index key_width = 1;    // d_k, numbers per cached key and head
  Index value_width = 1;  // d_v
  Index tokens = 1;
  Index batch = 1;
  Format format = Format::f16;
};

struct Footprint {
  std::uint64_t bytes = 0;
  std::string formula;  // with the numbers in it, ending in the result
};

/// 2 x layers x KV heads x width x tokens x batch x bytes per number; (d_k + d_v) takes the place
/// of 2 x width when they differ. Domain: every extent >= 0. Error: none. Special: throws Error,
/// naming what is wrong, for a negative extent or a result beyond 2^64 - 1 bytes.
Footprint kv_cache_footprint(const CacheShape& shape);

/// "1 GiB", "1.5 KiB", "7 bytes": for people; three decimals at most, rounded to nearest.
std::string readable_bytes(std::uint64_t bytes);

}  // namespace attest
