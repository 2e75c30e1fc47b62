// Corpus: checks kept as text, one line each, in files NAME.case; and how far a long campaign got.
// Found once, kept for ever. Knows nothing of running them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/check.hpp"

namespace attest {

/// Every line of every *.case file of `folder`, in the order of file names. Blank lines and those
/// that begin with '#' are skipped; every other line must name its property. Throws Error naming
/// file, line and column. A folder that is not there holds nothing.
std::vector<PropertyCase> read_corpus(const std::filesystem::path& folder);

/// Adds a file for `check` unless there is one already; `origin` becomes its comment. Returns its
/// path. The file appears whole or not at all. Throws Error when the folder cannot be written.
std::filesystem::path add_to_corpus(const std::filesystem::path& folder, const PropertyCase& check,
                                    const std::string& origin);

/// Where a campaign that was killed goes on. Valid only for the same seed and the same properties,
/// because both decide what an index stands for.
struct CampaignPlace {
  std::uint64_t seed = 1;
  std::uint64_t next_index = 0;
  std::string properties;  // separated by commas, in catalogue order
  std::string subject;     // another one has seen none of the cases
  std::string where = {};  // what of it was asked for; empty: everything
  bool operator==(const CampaignPlace&) const = default;
};
/// Nothing when there is none. Throws Error for a file that is not one.
std::optional<CampaignPlace> read_place(const std::filesystem::path& folder);
void write_place(const std::filesystem::path& folder, const CampaignPlace& place);

}  // namespace attest
