// Plan: which numbered cases of a campaign are aimed (steering.hpp), round by round, and which take
// a pair of features to be tried (properties/domains/pairs.hpp). What is aimed at in one round
// follows from what was counted before the round before it: so nobody waits for the last case of a
// round, and nothing depends on which thread was quicker.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/steering.hpp"

namespace attest {

/// Not locked: its owner calls one function at a time.
class Plan {
 public:
  Plan(std::vector<const Property*> properties, std::uint64_t first_index);

  /// Whether it is known what the drawn case `index`, counted over all properties, is aimed at.
  bool knows(std::uint64_t index) const;
  /// The index to draw it by, among the cases of its property.
  std::uint64_t draw_index(std::uint64_t index) const;
  /// Null: it is not aimed. Stays where it is.
  const Aim* aim(std::uint64_t index) const;
  /// By which number of the subject's plan of pairs it is made; nothing: by none.
  std::optional<std::uint64_t> pair(std::uint64_t index) const;

  /// All cases below `index` have been counted into `run`.
  void counted(std::uint64_t index, const Run& run);
  /// An aimed case was counted. It is spent when it did not come to its cell, or was not sharp
  /// there.
  void seen(const Aim& aim, const Case& test_case, const Observation& seen);

 private:
  std::uint64_t round_of(std::uint64_t index) const;
  std::uint64_t number_of(std::uint64_t index) const { return index / properties_.size(); }
  const Property& property_of(std::uint64_t index) const {
    return *properties_[index % properties_.size()];
  }
  /// Whether it is behind what every campaign of a central property begins with.
  bool takes_turns(std::uint64_t index) const;

  std::vector<const Property*> properties_;
  std::uint64_t first_round_;
  std::map<std::uint64_t, std::vector<std::vector<Aim>>> rounds_;  // by round, then property
  std::map<std::string, std::uint64_t> spent_;                     // by cell
};

}  // namespace attest
