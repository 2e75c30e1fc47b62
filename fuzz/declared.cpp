// One row per number of a PrecisionPath that makes a bound wider as it grows.
#include "fuzz/declared.hpp"

#include <algorithm>

#include "reference/formats.hpp"

namespace attest {

void widen(std::map<std::string, double>& widest, const PrecisionPath& path) {
  const auto raise = [&widest](const char* name, double size) {
    double& kept = widest[name];
    kept = std::max(kept, size);
  };
  raise("exp_error", path.exp_error);
  raise("log_error", path.log_error);
  raise("tanh_error", path.tanh_error);
  raise("division_error", path.division_error);
  raise("rescale_threshold_log2", path.rescale_threshold_log2);
  raise("p_format", unit_roundoff(path.p_format));
}

}  // namespace attest
