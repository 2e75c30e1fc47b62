// footprint: bytes of a cache, exactly, with the formula.
#include "reference/footprint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "reference/names.hpp"
#include "reference/text.hpp"
#include "reports/commands/commands.hpp"
#include "reports/say.hpp"

namespace attest {
namespace {

Format format_named(const std::string& word) {
  const auto names = format_names();
  const auto at = std::ranges::find(names, word);
  if (at != names.end()) return static_cast<Format>(at - names.begin());
  const std::string near = nearest(word, names);
  throw Error(fmt::format("--format: there is no format '{}'; {}", word,
                          near.empty() ? "`attest list formats` names them all"
                                       : fmt::format("did you mean '{}'?", near)));
}

}  // namespace

int footprint(const FootprintOptions& options) {
  CacheShape shape;
  shape.layers = options.layers;
  shape.num_heads_kv = options.num_heads_kv;
  shape.key_width = options.head_dim;
  shape.value_width = options.head_dim_v.value_or(options.head_dim);
  shape.tokens = options.tokens;
  shape.batch = options.batch;
  shape.format = format_named(options.format);
  const Footprint cache = kv_cache_footprint(shape);
  say("{}\n{}\n", cache.formula, readable_bytes(cache.bytes));
  return 0;
}

}  // namespace attest
