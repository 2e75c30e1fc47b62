// A Verdict as JSON and back: the same in run.json and in a finding's verdict.json.
#pragma once
#include "reference/verdict.hpp"
#include "reports/strict_json.hpp"

namespace attest {

nlohmann::json json_of(const Verdict& verdict);
Verdict read_verdict(const Fields& fields);
std::array<Index, 4> read_where(const Fields& fields, std::string_view name);

}  // namespace attest
