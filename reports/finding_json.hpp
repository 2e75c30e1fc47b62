// verdict.json, without the folder around it.
#pragma once
#include <string>
#include <string_view>

#include "reports/formats.hpp"

namespace attest {

/// Everything but the values. Throws Error naming file and field.
StoredFinding finding_of_json(std::string_view text, const std::string& file_name);

}  // namespace attest
