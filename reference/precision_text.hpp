// The fields of PrecisionPath as one table, from which its one-line text, its JSON, the help and
// the checks are made; and well-known paths by name. What the fields do to the allowed error is
// reference/bound/README.md's business.
//   p_format=bf16 kv_block=64 kv_blocks_descending      or      fa2 kv_block=64
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "reference/precision.hpp"
#include "reference/text.hpp"

namespace attest {

/// Keys of a part: a number, or one of the words of kEvenSplits and kPowerOfTwoSplits.
struct SplitSizePlace {
  Index PrecisionPath::*value;
};

struct PrecisionField {
  std::string_view name;
  std::string_view form;  // as it is written in a line; of a flag its name
  std::string_view what;  // a phrase for people
  std::variant<Format PrecisionPath::*, double PrecisionPath::*, Index PrecisionPath::*,
               bool PrecisionPath::*, SplitSizePlace>
      place;
  double least = 0, most = 0;  // of a number
  std::string_view also = {};  // what older lines and files call it
};

/// In the order in which they are printed.
std::span<const PrecisionField> precision_fields();

/// What a line that does not have the field says of it, for people.
std::string default_text(const PrecisionField& field);

/// `even`, `power_of_two` or the number itself; nothing for a text that is none of these.
std::string print_split_size(Index part);
std::optional<Index> split_size_named(std::string_view text);

/// Why a path is impossible ("keys_per_rescale is 0; legal are whole numbers from 1"), or empty.
std::string precision_invalidity(const PrecisionPath& path);

/// p_format, and whatever else differs from the default; parse_precision(print(path)) == path for
/// every possible path.
std::string print(const PrecisionPath& path);

/// A path that others have published, under a name.
struct KnownPath {
  std::string_view name;
  std::string_view what;           // for people: which kernels, and what is assumed
  std::string_view source;         // where the facts are from
  std::span<const Format> inputs;  // P takes the format of q, which must be one of these; none: any
  PrecisionPath path;
};
std::span<const KnownPath> known_paths();

/// A line of fields in any order, or the name of a known path and then the fields in which this one
/// differs. `input` is the format of q. With `kv_block` and no `keys_per_rescale`, no two rescales
/// are nearer than a block, and keys_per_rescale is the block. Throws Error naming the column (from
/// 1), what was found and what would have been legal.
PrecisionPath parse_precision(std::string_view line, Format input = Format::f32);

}  // namespace attest
