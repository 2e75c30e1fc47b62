// The spellings of enumerators as tables, for whoever reads them from text. The spellings
// themselves stand in text.cpp and nowhere else; names come in the order of the enumerators.
#pragma once
#include <span>
#include <string_view>

#include "reference/problem.hpp"

namespace attest {

std::span<const std::string_view> format_names();
std::span<const std::string_view> alignment_names();
std::span<const std::string_view> empty_row_names();
std::span<const std::string_view> log_base_names();
std::span<const std::string_view> empty_lse_names();
std::span<const std::string_view> strided_names();
std::span<const std::string_view> layout_names();
std::span<const std::string_view> scales_names();
std::span<const std::string_view> rope_names();

}  // namespace attest
