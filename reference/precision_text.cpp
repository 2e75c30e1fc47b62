// The table of the fields of a PrecisionPath, its text, and the paths that have names.
#include "reference/precision_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "reference/line_words.hpp"
#include "reference/names.hpp"

namespace attest {
namespace {

constexpr double kMany = 0x1p62;    // of what is counted; blocks that large are one
constexpr double kRangeMost = 126;  // powers of two that a factor on f32 numbers may bring
constexpr std::string_view kEven = "even", kPowerOfTwo = "power_of_two";

using Path = PrecisionPath;
constexpr PrecisionField kFields[] = {
    {"p_format", "p_format=FORMAT",
     "what weights are rounded to before they meet V; f32: they are not", &Path::p_format},
    {"exp_error", "exp_error=NUMBER",
     "relative error of the exponential; one ulp of f32, 2^-23, is always allowed",
     &Path::exp_error, 0, 1},
    {"log_error", "log_error=NUMBER",
     "error of the logarithm in LSE, nats (relative where it is above 1), besides its roundings",
     &Path::log_error, 0, 1},
    {"tanh_error", "tanh_error=NUMBER",
     "relative error of tanh in softcap; one ulp of f32, 2^-23, is always allowed",
     &Path::tanh_error, 0, 1},
    {"division_error", "division_error=NUMBER",
     "relative error of 1/l and the product with it; three roundings, 3 2^-24, are always allowed",
     &Path::division_error, 0, 1},
    {"keys_per_rescale", "keys_per_rescale=KEYS",
     "least number of keys between two rescales; 1: unknown", &Path::keys_per_rescale, 1, kMany,
     "key_block"},
    {"tensor_step", "tensor_step=PRODUCTS",
     "products that tensor cores add in one step, at least; 0: f32 operations", &Path::tensor_step,
     0, kMany},
    {"row_sum_of_rounded_p", "row_sum_of_rounded_p",
     "the row sum adds weights as rounded to p_format", &Path::row_sum_of_rounded_p, 0, 0,
     "sums_cast"},
    {"v_scale_in_p", "v_scale_in_p", "a scale of v joins the weight before that rounding",
     &Path::v_scale_in_p, 0, 0, "scales_in_p"},
    {"rescale_threshold_log2", "rescale_threshold_log2=POWERS",
     "powers of two by which a weight may exceed 1 before row_max rises; 0: it is always raised",
     &Path::rescale_threshold_log2, 0, kRangeMost, "lazy"},
    {"p_scale_log2", "p_scale_log2=POWERS", "log2 of a factor on the weights at their rounding",
     &Path::p_scale_log2, -kRangeMost, kRangeMost, "p_shift"},
    {"kv_block", "kv_block=KEYS",
     "keys that share one row_max and are added to one accumulator; 0: unknown", &Path::kv_block, 0,
     kMany, "block"},
    {"interleaved_accumulators", "interleaved_accumulators=COUNT",
     "accumulators (row_max, row_sum, O) to which the KV blocks of a split are dealt in turn",
     &Path::interleaved_accumulators, 1, kMany, "streams"},
    {"kv_blocks_descending", "kv_blocks_descending", "the last KV block comes first",
     &Path::kv_blocks_descending, 0, 0, "falling"},
    {"split_size", "split_size=KEYS|even|power_of_two",
     "keys of a split of the sequence; 0: unknown", SplitSizePlace{&Path::split_size}, 0, kMany,
     "part"},
    {"in_order", "in_order",
     "q.k is added in rising order, and so is P V, to one accumulator for all its KV blocks",
     &Path::in_order},
    {"partial_row_sums", "partial_row_sums=SUMS", "partial sums of the row sum in an accumulator",
     &Path::partial_row_sums, 1, kMany, "sum_lanes"},
    {"normalize_before_cast", "normalize_before_cast",
     "weights are divided by the row sum before they are rounded to p_format (eager frameworks, "
     "JAX)",
     &Path::normalize_before_cast},
    {"scores_format", "scores_format=FORMAT",
     "what q.k is rounded to, and again after the scale and whatever else; f32: it is not",
     &Path::scores_format},
};

// ex2.approx.f32 is within 2 ulp of correctly rounded, rcp.approx within 1, tanh.approx within
// 2^-11 (PTX ISA); __logf within 2^-21.41 of 0.5 to 2 and within 3 ulp elsewhere (CUDA C++
// Programming Guide, mathematical functions, as expf, logf and tanhf: 2, 1 and 2 ulp).
constexpr double kEx2Approx = 5 * 0x1p-24, kReciprocalProduct = 4 * 0x1p-24;
constexpr double kTanhApprox = 0x1p-11, kFastLog = 3.59e-7;
constexpr double kUlp = 0x1p-23;  // of f32, relative, at most

constexpr Format kSixteenBits[] = {Format::f16, Format::bf16}, kE4m3[] = {Format::e4m3};

/// FlashAttention since its second version: fast math, the last block first, four lanes to a row.
constexpr Path flash_attention(Index tensor_step, double p_scale_log2 = 0) {
  return {.exp_error = kEx2Approx,
          .log_error = kFastLog,
          .tanh_error = kTanhApprox,
          .division_error = kReciprocalProduct,
          .tensor_step = tensor_step,
          .p_scale_log2 = p_scale_log2,
          .kv_blocks_descending = true,
          .in_order = true,
          .partial_row_sums = 4};
}

constexpr KnownPath kKnownPaths[] = {
    {"f32",
     "any kernel that computes in f32 with the functions of CUDA's library, not those of fast "
     "math; "
     "any order",
     "CUDA C++ Programming Guide, mathematical functions",
     {},
     Path{
         .exp_error = 2 * kUlp, .log_error = kUlp, .tanh_error = 2 * kUlp, .division_error = kUlp}},
    {"fa2",
     "FlashAttention-2 forward in f16 or bf16 with fast math, on sm_80 to sm_89; tensor_step=16 on "
     "sm_90. Add kv_block=128 for heads up to 64 wide, kv_block=64 for wider ones (32 on sm_86 and "
     "sm_89 "
     "at 128 unless causal); with a cache 256, 128 above 64, 64 above 128",
     "Dao-AILab/flash-attention: csrc/flash_attn/src, softmax.h, flash_fwd_kernel.h, "
     "flash_fwd_launch_template.h",
     kSixteenBits, flash_attention(8)},
    {"fa3",
     "FlashAttention-3 forward in f16 or bf16 with fast math, on sm_90, not split. Add "
     "kv_block=192 "
     "for "
     "heads up to 64 wide (128 when causal), 144 up to 96, 176 up to 128 (128 when causal), 112 up "
     "to 192 (128 when V is at most 128 wide), 80 above; with a window or pages others",
     "Dao-AILab/flash-attention: hopper, softmax.h, tile_size.h, mainloop_fwd_sm90_tma_gmma_ws.hpp",
     kSixteenBits, flash_attention(16)},
    {"fa3_fp8",
     "FlashAttention-3 forward in e4m3 with fast math, on sm_90, not split; the scale of q goes "
     "into the problem's scale, those of k and v into k_scales and v_scales. Add kv_block=160 for "
     "heads up to 64 wide, 128 up to 96, 224 up to 128, 160 up to 192, 128 above; with a window, "
     "pages or few queries others",
     "Dao-AILab/flash-attention: hopper, softmax.h (Max_offset), tile_size.h, "
     "mainloop_fwd_sm90_tma_gmma_ws.hpp",
     kE4m3, flash_attention(32, 8)},
};

std::span<const std::string_view> float_names() {
  return format_names().first(static_cast<std::size_t>(Format::i8));
}

/// What a line that says nothing of keys_per_rescale means.
Index default_keys_per_rescale(const Path& path) {
  return path.kv_block > 0 ? path.kv_block : 1;
}

std::string range_text(const PrecisionField& field) {
  return field.most == kMany ? fmt::format("whole numbers from {}", field.least)
                             : fmt::format("numbers from {} to {}", field.least, field.most);
}

/// Why a field's value is impossible, or empty.
std::string wrong_value(const PrecisionField& field, const Path& path) {
  return std::visit(
      [&](auto place) -> std::string {
        using Place = decltype(place);
        if constexpr (std::is_same_v<Place, Format Path::*>) {
          if (path.*place < Format::i8) return {};
          return fmt::format("{} is no format of weights or scores; legal are {}", field.name,
                             fmt::join(float_names(), ", "));
        } else if constexpr (std::is_same_v<Place, SplitSizePlace>) {
          const Index part = path.*place.value;
          if (part >= kPowerOfTwoSplits) return {};
          return fmt::format("split_size is {}; legal are {} and {}, {}", part, range_text(field),
                             kEven, kPowerOfTwo);
        } else if constexpr (std::is_same_v<Place, bool Path::*>) {
          return {};
        } else {
          const auto number = static_cast<double>(path.*place);
          if (number >= field.least && number <= field.most) return {};  // so NaN is refused
          return fmt::format("{} is {}; legal are {}", field.name, shortest(path.*place),
                             range_text(field));
        }
      },
      field.place);
}

/// Nothing: it is the default.
std::optional<std::string> written(const PrecisionField& field, const Path& path) {
  if (field.name == "keys_per_rescale") {
    if (path.keys_per_rescale == default_keys_per_rescale(path)) return {};
    return shortest(path.keys_per_rescale);
  }
  return std::visit(
      [&](auto place) -> std::optional<std::string> {
        using Place = decltype(place);
        if constexpr (std::is_same_v<Place, Format Path::*>) {
          // P's always, so that no line is empty.
          if (field.name != "p_format" && path.*place == Path{}.*place) return {};
          return std::string(name_of(path.*place));
        } else if constexpr (std::is_same_v<Place, SplitSizePlace>) {
          if (path.*place.value == Path{}.*place.value) return {};
          return print_split_size(path.*place.value);
        } else if constexpr (std::is_same_v<Place, bool Path::*>) {
          if (!(path.*place)) return {};
          return std::string();
        } else {
          if (path.*place == Path{}.*place) return {};
          return shortest(path.*place);
        }
      },
      field.place);
}

void read_into(const PrecisionField& field, const Piece& value, Path& path) {
  std::visit(
      [&](auto place) {
        using Place = decltype(place);
        if constexpr (std::is_same_v<Place, Format Path::*>) {
          path.*place = static_cast<Format>(read_name(value, float_names()));
        } else if constexpr (std::is_same_v<Place, SplitSizePlace>) {
          const auto part = split_size_named(value.text);
          if (!part) {
            read_number<Index>(value, field.form);
            value.refuse(fmt::format("{} is negative", quoted(value.text)),
                         fmt::format("legal is {}", field.form));
          }
          path.*place.value = *part;
        } else if constexpr (std::is_same_v<Place, bool Path::*>) {
          path.*place = true;
        } else if constexpr (std::is_same_v<Place, double Path::*>) {
          path.*place = read_number<double>(value, field.form);
        } else {
          path.*place = read_number<Index>(value, field.form);
        }
      },
      field.place);
  if (const std::string wrong = wrong_value(field, path); !wrong.empty()) {
    const std::size_t stop = wrong.find("; ");
    value.refuse(wrong.substr(0, stop), wrong.substr(stop + 2));
  }
}

Path known_path(const KnownPath& known, const Piece& word, Format input) {
  Path path = known.path;
  if (known.inputs.empty()) return path;
  if (std::find(known.inputs.begin(), known.inputs.end(), input) == known.inputs.end()) {
    std::vector<std::string_view> names;
    for (const Format format : known.inputs) names.push_back(name_of(format));
    word.refuse(fmt::format("{} is a path of {}, and q is {}", known.name,
                            fmt::join(names, " and "), name_of(input)),
                "say the fields instead");
  }
  path.p_format = input;
  return path;
}

}  // namespace

std::span<const PrecisionField> precision_fields() {
  return kFields;
}
std::span<const KnownPath> known_paths() {
  return kKnownPaths;
}

std::string default_text(const PrecisionField& field) {
  return std::visit(
      [&](auto place) -> std::string {
        using Place = decltype(place);
        if constexpr (std::is_same_v<Place, Format Path::*>) {
          return std::string(name_of(Path{}.*place));
        } else if constexpr (std::is_same_v<Place, SplitSizePlace>) {
          return print_split_size(Path{}.*place.value);
        } else if constexpr (std::is_same_v<Place, bool Path::*>) {
          return Path{}.*place ? "yes" : "no";
        } else {
          const std::string number = shortest(Path{}.*place);
          return field.name == "keys_per_rescale" ? number + ", or kv_block where that is given"
                                                  : number;
        }
      },
      field.place);
}

std::string print_split_size(Index part) {
  if (part == kEvenSplits) return std::string(kEven);
  return part == kPowerOfTwoSplits ? std::string(kPowerOfTwo) : shortest(part);
}

std::optional<Index> split_size_named(std::string_view text) {
  if (text == kEven) return kEvenSplits;
  if (text == kPowerOfTwo) return kPowerOfTwoSplits;
  Index keys = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), keys);
  if (error != std::errc() || stop != text.data() + text.size() || keys < 0) return {};
  return keys;
}

std::string precision_invalidity(const PrecisionPath& path) {
  for (const PrecisionField& field : kFields) {
    if (std::string wrong = wrong_value(field, path); !wrong.empty()) return wrong;
  }
  if (path.row_sum_of_rounded_p && path.normalize_before_cast) {
    return "row_sum_of_rounded_p does not go with normalize_before_cast: a sum that divides "
           "weights before "
           "they are cast cannot add them as cast";
  }
  return {};
}

std::string print(const PrecisionPath& path) {
  std::string line;
  for (const PrecisionField& field : kFields) {
    const auto value = written(field, path);
    if (!value) continue;
    if (!line.empty()) line += ' ';
    line += field.name;
    if (field.form != field.name) line += "=" + *value;
  }
  return line;
}

PrecisionPath parse_precision(std::string_view line, Format input) {
  std::vector<Word> words;
  for (const PrecisionField& field : kFields) words.push_back({field.name, field.form, field.also});
  for (const KnownPath& known : kKnownPaths) words.push_back({known.name, known.name});
  PrecisionPath path;
  bool first = true, says_keys_per_rescale = false;
  read_words(
      {"precision", line}, words, print(PrecisionPath{}), [&](std::size_t n, const Piece& value) {
        if (n < std::size(kFields)) {
          says_keys_per_rescale = says_keys_per_rescale || kFields[n].name == "keys_per_rescale";
          read_into(kFields[n], value, path);
        } else if (!first) {
          value.refuse(fmt::format("'{}' names a whole path behind other words", words[n].name),
                       "it must come first, and what follows says otherwise of it");
        } else {
          path = known_path(kKnownPaths[n - std::size(kFields)], value, input);
        }
        first = false;
      });
  if (!says_keys_per_rescale) path.keys_per_rescale = default_keys_per_rescale(path);
  if (const std::string wrong = precision_invalidity(path); !wrong.empty()) {
    throw Error("precision: " + wrong);
  }
  return path;
}

}  // namespace attest
