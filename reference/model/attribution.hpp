// Attribution: which stage of a declared path an error comes from, by making stages of its model
// exact one at a time, and all but one. Knows no subject: it speaks of the path, not of a kernel.
#pragma once
#include <array>

#include "reference/model/model.hpp"

namespace attest {

/// How large some errors of O are.
struct ErrorSize {
  double rms = 0;   // over elements, relative to the rms of O
  double mean = 0;  // signed, likewise relative; positive: away from zero
  double ulps = 0;  // rms over elements in ulps of the output format at O
};

struct StageError {
  ErrorSize vanishes;  // what changes when this stage alone is exact
  ErrorSize remains;   // the error when all other stages are exact
  double share = 0;    // of the sum over stages of remains.rms^2; all are 0 where no stage errs
};

struct Attribution {
  Index elements = 0;  // of O: rows behind a query length and elements not finite are left out
  double o_rms = 0;    // of the truth
  ErrorSize total;     // with no stage exact
  std::array<StageError, kStageNames.size()> stages;  // by Stage
  const StageError& of(Stage stage) const { return stages[static_cast<std::size_t>(stage)]; }
};

/// Errors of stages are independent where roundings are, and then their squares add up, which is
/// what a share is of. Where they are not (a bias), `vanishes` and `remains` differ; both are
/// given. Domain: as model_attention, which is run 14 times. Error: the truth is the model with
/// every stage exact, so what is below 2^-40 or so of O is noise of double.
Attribution attribute(const Problem& problem, const Values& values, const PrecisionPath& path,
                      const Freedom& freedom = {});

}  // namespace attest
