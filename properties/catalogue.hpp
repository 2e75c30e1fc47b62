// One check per property, each in the file of its name; catalogue.cpp lists them with their
// statements. Plain functions of what they are given: nothing random, nothing remembered.
#pragma once
#include "properties/property.hpp"

namespace attest {

using Check = Verdict(const Subject&, const Problem&, const Values&);
using Explanation = std::string(const Subject&, const Problem&, const Values&);

Check append_writes_its_slots;
Check batch_independence;
Check batch_invariance;
Check cached_equals_recomputed;
Check cached_work;
Check causality;
Check convexity;
Check copied_pages;
Check decode_agreement;
Check effective_scale;
Check no_score_matrix;
Check oracle_agreement;
Check projection_agreement;
Check quantised_path;
Check recovered_weights;
Check rerun;
Check row_sums;
Check variance_scaling;
Check visible_nonfinite;
Check work_grows_with_scores;

Explanation explain_decode_agreement;
Explanation explain_oracle_agreement;

}  // namespace attest
