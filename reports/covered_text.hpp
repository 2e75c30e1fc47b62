// What the judged cases had of what a subject accepts, in words for the table and the summary.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "fuzz/run.hpp"

namespace attest {

/// "prefill: batch 1 to 64, head_dim 1 to 576, ...", one per operation.
std::vector<std::string> drawn_of(const Run& run);
/// "prefill 2057 of 2057", one per operation.
std::vector<std::string> pairs_drawn_of(const Run& run);
/// Values that are accepted, but no judged case had: "decode: head_dim=48, page_size=512 and 9
/// more", one per operation, `most` values of each.
std::vector<std::string> undrawn_of(const Run& run, std::size_t most);

}  // namespace attest
