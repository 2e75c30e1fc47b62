// A check: a property, a Case and the setting it runs under, which is all that a journal line, a
// corpus line or a replay says; and what comes of running one. Nothing here is random, and nothing
// here knows of campaigns.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "properties/property.hpp"
#include "reference/fnv.hpp"

namespace attest {

struct PropertyCase {
  std::string property;  // empty in a line that names none
  Case test_case;
  std::optional<Setting> setting = {};  // nothing in a line that names none
  bool operator==(const PropertyCase&) const = default;
};

/// "causality q=1x1x2x1 ... numerics=sm_90 schedule=7": property, case line, setting.
std::string print(const PropertyCase& check);
/// The first word is a property when it holds no '='. Throws Error as parse_case does, and for an
/// unknown property (suggesting the nearest). Of a setting one word may be missing: its default.
PropertyCase parse_check(std::string_view line);

/// Throws Error for an unknown name, suggesting the nearest.
const Property& property_named(std::string_view name);

/// The named ones in catalogue order; all of them where none is named. Throws as property_named.
std::vector<const Property*> properties_named(const std::vector<std::string>& names);

/// A verdict, and what the subject was seen to do while it came about.
struct Observation {
  Verdict verdict;
  std::string fault_kind;                  // of the first faulted reply; empty: none
  std::uint64_t replies = 0;               // calls of the subject
  std::uint64_t o_digest = 0;              // of the bits of every O, in order
  std::uint64_t lse_digest = 0;            // of the bits of every LSE, in order
  Counters counters;                       // over all replies
  std::set<std::string> kernels;           // launched by any of them
  std::map<std::string, double> declared;  // the widest of every precision path asked for
};
/// "violated", "violated: order_free" where even the bound that knows no order refuses, "faulted:
/// memcheck": two findings of one property and one kind are one.
std::string kind_of(const Observation& seen);

Observation observe(const Subject& subject, const Property& property, const Problem& problem,
                    const Values& values);
Observation observe(const Subject& subject, const Property& property, const Case& test_case);

/// Adds to the verdict of a violation what the property has to say of it; asks the subject again,
/// under its setting of now.
void explain(const Subject& subject, const Property& property, const Problem& problem,
             const Values& values, Verdict& verdict);

/// Nothing when the subject has nothing to choose. Throws Error for a numeric model that is none.
void begin_under(const Subject& subject, const std::optional<Setting>& setting);

/// One check, nothing random: what replay does.
Verdict check_case(const Subject& subject, const Property& property, const Case& test_case);

/// Of the format, the extent and every stored bit, continuing from `digest`.
std::uint64_t digest_of(const Tensor& tensor, std::uint64_t digest = kFnvBasis);
/// Of every bit that the subject was seen to write.
std::uint64_t digest_of(const Observation& seen);

}  // namespace attest
