// What a run could tell, as members of run.json: which operations were offered, which cases were
// sharp, how wide the declared paths were, what failed once only. All came with version 0.2 of the
// program; a file without them has none of it.
#pragma once
#include "fuzz/run.hpp"
#include "reports/strict_json.hpp"

namespace attest {

void put_sight(nlohmann::json& json, const Run& run);
void read_sight(const Fields& fields, Run& run);

}  // namespace attest
