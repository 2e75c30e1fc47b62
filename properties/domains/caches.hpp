// Caches of a drawn Problem: pages and their order, rings, formats, scales, turned keys.
#pragma once
#include "properties/domains/extents.hpp"

namespace attest {

/// Sets what `needs` asks for, in a part of the cases; all other draws stay what they are.
void draw_cache(Problem& p, const Needs& needs);

}  // namespace attest
