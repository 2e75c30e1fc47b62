// A PrecisionPath as JSON and back: one member per field of the table of reference/precision_text.
#pragma once
#include "reference/precision.hpp"
#include "reports/strict_json.hpp"

namespace attest {

nlohmann::json json_of(const PrecisionPath& path);
/// Fields that came after `tensor_step` may be absent: files of earlier versions lack them.
PrecisionPath read_precision(const Fields& fields);

}  // namespace attest
