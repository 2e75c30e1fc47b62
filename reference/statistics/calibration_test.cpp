// Where the model of errors is calibrated: kernels that are right, in every combination of formats,
// lengths and features, give z with a deviation of about 1 and no alarm. The tables are those of
// README.md. Where it is not calibrated nothing is said.
#include "reference/statistics/calibration.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>

#include "reference/statistics/testing/cells.hpp"

namespace attest {
namespace {

using enum Format;

const TestCell kKernels[] = {
    {"f32 P, block 16, out f32", cell_problem(f32, f32, 64, 0), cell_path(f32, 0, 16)},
    {"bf16 inputs, f32 P, out f32", cell_problem(bf16, f32, 64, 0), cell_path(f32, 0, 32)},
    {"bf16 P, FMA, out f32", cell_problem(bf16, f32, 64, 0), cell_path(bf16, 0, 64)},
    {"bf16 P, H100, out bf16", cell_problem(bf16, bf16, 64, 0), cell_path(bf16, 16, 64)},
    {"f16 P, A100, out f32", cell_problem(f16, f32, 64, 0), cell_path(f16, 8, 64)},
    {"f16 P, V100, out f16", cell_problem(f16, f16, 64, 0), cell_path(f16, 4, 32)},
};

void expect_calibrated(const std::string& name, const ZTally& tally) {
  const std::optional<ZSummary> z = tally.summary();
  ASSERT_TRUE(z) << name << ": " << tally.why_not();
  print_row(name, *z);
  EXPECT_LT(deviation_of(*z), statistics::kDeviationMost) << name;
  EXPECT_GT(deviation_of(*z), 0.85) << name;
  for (const Standardised* one : {&z->inward, &z->offset, &z->scattered, &z->sharper, &z->others}) {
    EXPECT_LT(std::fabs(one->total), 6) << name;
  }
  EXPECT_EQ(alarms_of(*z), "") << name;
}

TEST(Calibration, RightKernelsOfEveryFormatAndLength) {
  print_header();
  for (const TestCell& kernel : kKernels) {
    for (bool positive : {false, true}) {
      for (Index keys : {16, 64, 256, 1024}) {
        Problem p = kernel.problem;
        p.seqlen_kv = keys;
        const Values values = drawn(p, positive, static_cast<std::uint64_t>(keys));
        ZTally tally;
        tally.add(p, values, kernel.path, modelled(p, values, kernel.path));
        expect_calibrated(kernel.name + (positive ? ", V>0, " : ", ") + std::to_string(keys),
                          tally);
      }
    }
  }
}

// Two passes, and the sums as the model has them; the exponential in three forms.
TEST(Calibration, KernelsThatShareNoCodeWithTheModel) {
  print_header();
  for (Format input : {f32, bf16}) {
    for (Exponential exponential :
         {Exponential::natural, Exponential::base_two_fma, Exponential::scaled_difference}) {
      for (Format p_format : {f32, bf16}) {
        Recipe recipe{.name = "simulated"};
        recipe.fma = true;
        recipe.exponential = exponential;
        recipe.p_format = p_format;
        const Problem p = cell_problem(input, p_format == f32 ? f32 : bf16, 64, 256);
        const Values values = drawn(p, input == f32, 3);
        ZTally tally;
        tally.add(p, values, path_of(recipe), simulate(p, values, recipe).o);
        expect_calibrated(fmt::format("exponential {}, P in {}", static_cast<int>(exponential),
                                      p_format == f32 ? "f32" : "bf16"),
                          tally);
      }
    }
  }
}

struct Feature {
  const char* name;
  void (*set)(Problem&, PrecisionPath&);
};
const Feature kFeatures[] = {
    {"causal", [](Problem& p, PrecisionPath&) { p.causal = true; }},
    {"window", [](Problem& p, PrecisionPath&) { p.window_left = p.window_right = 40; }},
    {"softcap", [](Problem& p, PrecisionPath&) { p.softcap = 2; }},
    {"bias", [](Problem& p, PrecisionPath&) { p.bias = true; }},
    {"alibi", [](Problem& p, PrecisionPath&) { p.alibi = true; }},
    {"sinks", [](Problem& p, PrecisionPath&) { p.sinks = true; }},
    {"mask", [](Problem& p, PrecisionPath&) { p.mask = true; }},
    {"grouped heads",
     [](Problem& p, PrecisionPath&) {
       p.num_heads_q = 4;
       p.seqlen_q = 16;
     }},
    {"3 splits",
     [](Problem& p, PrecisionPath& path) {
       p.num_splits = 3;
       path.split_size = kEvenSplits;
     }},
    {"4 streams, falling, 4 lanes",
     [](Problem&, PrecisionPath& path) {
       path.interleaved_accumulators = 4;
       path.kv_block = path.keys_per_rescale = 8;
       path.kv_blocks_descending = true;
       path.partial_row_sums = 4;
     }},
    {"lazy reference", [](Problem&, PrecisionPath& path) { path.rescale_threshold_log2 = 8; }},
    {"row sum of the cast P",
     [](Problem&, PrecisionPath& path) { path.row_sum_of_rounded_p = true; }},
    {"e4m3 cache with scales",
     [](Problem& p, PrecisionPath& path) {
       p.cache = e4m3;
       p.scales = Scales::token;
       path.v_scale_in_p = true;
     }},
    {"i8 cache with scales",
     [](Problem& p, PrecisionPath&) {
       p.cache = i8;
       p.scales = Scales::head;
     }},
};

TEST(Calibration, RightKernelsWithEveryFeature) {
  print_header();
  for (const Feature& feature : kFeatures) {
    for (Format p_format : {f32, bf16}) {
      Problem p = cell_problem(p_format, p_format, 64, 128);
      PrecisionPath path = cell_path(p_format, 0, 16);
      feature.set(p, path);
      if (p.cache) p.input = bf16;
      const Values values = drawn(p, false, 5);
      ZTally tally;
      tally.add(p, values, path, modelled(p, values, path));
      expect_calibrated(feature.name + std::string(p_format == f32 ? ", f32" : ", bf16"), tally);
    }
  }
}

// A mean that is off by a hundredth of a deviation per row would show: 8192 rows are Z = 1.
TEST(Calibration, ManyRowsShowNoBias) {
  print_header();
  for (const TestCell& kernel : kKernels) {
    ZTally tally;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      Problem p = kernel.problem;
      p.seqlen_q = 512;
      p.seqlen_kv = 48;
      p.head_dim_v = 32;
      const Values values = drawn(p, seed % 2 == 0, seed);
      tally.add(p, values, kernel.path, modelled(p, values, kernel.path));
    }
    expect_calibrated(kernel.name + ", 48", tally);
  }
}

using Change = void (*)(Values&);
struct Structured {
  const char* name;
  Change change;
};
void set_rows(Tensor& tensor, double (*of)(Index)) {
  const Index width = tensor.extent[3];
  for (Index i = 0; i < tensor.count(); ++i) tensor.set(i, of(i / width));
}
const Structured kStructured[] = {
    {"equal keys", [](Values& v) { set_rows(v.k, [](Index) { return 0.25; }); }},
    {"keys of two kinds",
     [](Values& v) { set_rows(v.k, [](Index j) { return j % 2 == 0 ? 0.25 : -0.125; }); }},
    {"a sink and flat",
     [](Values& v) { set_rows(v.k, [](Index j) { return j == 0 ? 1.0 : 0.0; }); }},
    {"each key eight times",
     [](Values& v) {
       for (Index i = 0; i < v.k.count(); ++i) {
         const Index width = v.k.extent[3];
         v.k.set(i, v.k.at(i / width / 8 * 8 * width + i % width));
       }
     }},
    {"keys that hardly differ",
     [](Values& v) {
       for (Index i = 0; i < v.k.count(); ++i) v.k.set(i, v.k.at(i) * 0x1p-14);
     }},
    {"one column of v twice",
     [](Values& v) {
       for (Index j = 0; j < v.v.extent[2]; ++j) v.v.set(0, 0, j, 1, v.v.at(0, 0, j, 0));
     }},
    {"one query twice",
     [](Values& v) {
       for (Index c = 0; c < v.q.extent[3]; ++c) v.q.set(0, 0, 1, c, v.q.at(0, 0, 0, c));
     }},
    {"equal rows of v",
     [](Values& v) {
       const Index width = v.v.extent[3];
       for (Index i = width; i < v.v.count(); ++i) v.v.set(i, v.v.at(i - width));
     }},
    {"peaky rows",
     [](Values& v) {
       for (Index i = 0; i < v.q.count(); ++i) v.q.set(i, v.q.at(i) * 30);
     }},
};

TEST(Calibration, NothingIsSaidWhereRoundingsAreFewOrTheSame) {
  const Problem p = cell_problem(bf16, f32, 64, 128);
  const PrecisionPath path = cell_path(bf16, 0, 32);
  for (const Structured& structured : kStructured) {
    Values values = drawn(p, true, 9);
    structured.change(values);
    const Tensor o = modelled(p, values, path);
    ZTally tally;
    tally.add(p, values, path, o);
    const LikelyErrors likely = likely_errors(p, values, path);
    double squares = 0, largest = 0;
    for (std::size_t at = 0; at < likely.o.size(); ++at) {
      const double error = o.at(static_cast<Index>(at)) - likely.o[at];
      const double z = (error - likely.mean[at]) / std::sqrt(likely.variance[at]);
      squares += z * z / static_cast<double>(likely.o.size());
      largest = std::max(largest, std::fabs(z));
    }
    std::printf("%-24s sd z %5.2f, max %6.2f if one judged it: %s\n", structured.name,
                std::sqrt(squares), largest, tally.why_not().c_str());
    EXPECT_FALSE(tally.summary()) << structured.name;
    EXPECT_NE(tally.why_not(), "") << structured.name;
  }
}

TEST(Calibration, NothingIsSaidOfShortRowsNorOfFewBits) {
  Problem p = cell_problem(bf16, f32, 4, 15);
  Values values = drawn(p, false, 2);
  ZTally few;
  few.add(p, values, cell_path(bf16, 0, 32), Tensor(f32, {1, 1, 4, 64}));
  EXPECT_FALSE(few.summary());
  p.seqlen_kv = 64;
  values = drawn(p, false, 2);
  ZTally coarse;
  coarse.add(p, values, cell_path(e4m3, 0, 32), Tensor(f32, {1, 1, 4, 64}));
  EXPECT_EQ(coarse.why_not(), "P has so few bits that its roundings are not uniform");
}

}  // namespace
}  // namespace attest
