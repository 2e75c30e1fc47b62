// Tensor files: what shapes, dtypes and words mean, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>

#include "reports/formats.hpp"
#include "reports/safetensors.hpp"
#include "reports/testing/sample_run.hpp"

namespace attest {
namespace {

/// Builds a file tensor by tensor and owns the numbers.
class Builder {
 public:
  template <class Number>
  Builder& add(std::string name, Dtype dtype, std::vector<Index> shape,
               const std::vector<Number>& numbers) {
    const auto bytes = std::as_bytes(std::span(numbers));
    owned_.emplace_back(bytes.begin(), bytes.end());
    content_.tensors.push_back({std::move(name), dtype, std::move(shape), {}});
    return *this;
  }
  Builder& f32(std::string name, std::vector<Index> shape, const std::vector<float>& numbers) {
    return add(std::move(name), Dtype::F32, std::move(shape), numbers);
  }
  Builder& say(const std::string& key, const std::string& text) {
    content_.metadata[key] = text;
    return *this;
  }
  TensorsFile read(std::string_view line = "") const {
    Safetensors content = content_;
    for (std::size_t i = 0; i < owned_.size(); ++i) content.tensors[i].bytes = owned_[i];
    const auto bytes = print_safetensors(content);
    return read_tensors(bytes, "f.safetensors", line);
  }
  std::string refusal(std::string_view line = "") const {
    try {
      read(line);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

 private:
  Safetensors content_;
  std::vector<std::vector<std::byte>> owned_;
};

std::vector<float> ramp(std::size_t count) {
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(i);
  return numbers;
}

/// 2 queries, 3 keys, head_dim 2, head_dim_v 1, one head.
Builder small() {
  Builder file;
  return file.f32("q", {2, 2}, ramp(4)).f32("k", {3, 2}, ramp(6)).f32("v", {3, 1}, ramp(3));
}

#define EXPECT_REFUSED(call, words) \
  EXPECT_NE((call).find(words), std::string::npos) << "said: " << (call)

TEST(TensorsFile, ExtentsFollowFromShapes) {
  const TensorsFile file = small().read();
  EXPECT_EQ(file.problem, parse_problem("q=1x1x2x2 kv=1x3x1"));
  EXPECT_EQ(file.problem.softmax_scale, default_scale(2));
  EXPECT_EQ(file.values.k.at(0, 0, 2, 1), 5);
  EXPECT_EQ(file.names.size(), 3U);
  EXPECT_FALSE(file.o.has_value());
  EXPECT_EQ(small().read("causal scale=0.25").problem,
            parse_problem("q=1x1x2x2 kv=1x3x1 causal scale=0.25"));
}

TEST(TensorsFile, HeadsAndBatchesAreLeadingAxes) {
  Builder file;
  file.f32("q", {4, 1, 2}, ramp(8)).f32("k", {1, 2, 3, 2}, ramp(12)).f32("v", {2, 3, 1}, ramp(6));
  const TensorsFile read = file.read();
  EXPECT_EQ(read.problem, parse_problem("q=1x4x1x2 kv=2x3x1"));
  EXPECT_EQ(read.values.k.at(0, 1, 0, 1), 7);
}

TEST(TensorsFile, RowsMayComeBeforeHeads) {
  Builder file;  // (B, T, H, D): element (b, t, h, d) = its index
  file.f32("q", {1, 2, 3, 2}, ramp(12))
      .f32("k", {1, 1, 3, 2}, ramp(6))
      .f32("v", {1, 1, 3, 1}, ramp(3));
  const TensorsFile read = file.read("layout=bthd");
  EXPECT_EQ(read.problem, parse_problem("q=1x3x2x2 kv=3x1x1 layout=bthd"));
  EXPECT_EQ(read.values.q.at(0, 2, 1, 1), (1 * 3 + 2) * 2 + 1);
  file.say("axes", "bthd");
  EXPECT_EQ(file.read().problem.layout, Layout::bhtd);  // how it is stored is not what is asked
  EXPECT_EQ(file.read().values.q.at(0, 1, 1, 0), 8);
  file.say("axes", "htbd");
  EXPECT_REFUSED(file.refusal(), "legal are bhtd and bthd");
}

TEST(TensorsFile, TheCommandLineOverridesTheMetadata) {
  Builder file = small();
  file.say("problem", "q=1x1x2x2 kv=1x3x1 causal scale=0.5");
  EXPECT_EQ(file.read().problem.softmax_scale, 0.5F);
  const Problem problem = file.read("scale=0.125 align=top_left").problem;
  EXPECT_EQ(problem.softmax_scale, 0.125F);
  EXPECT_TRUE(problem.causal);
  EXPECT_EQ(problem.alignment, Alignment::top_left);
}

TEST(TensorsFile, SaidExtentsMustAgree) {
  EXPECT_REFUSED(small().refusal("q=1x1x3x2"), "f.safetensors: q: shape [2, 2] does not fit");
  EXPECT_REFUSED(small().refusal("kv=1x3x2"), "f.safetensors: v: shape [3, 1] does not fit");
  Builder file;
  file.f32("q", {2, 2}, ramp(4)).f32("k", {3, 4}, ramp(12)).f32("v", {3, 1}, ramp(3));
  EXPECT_REFUSED(file.refusal(), "k: shape [3, 4] does not fit the Problem");
}

TEST(TensorsFile, ErrorsInTheLineNameTheColumnThatWasTyped) {
  EXPECT_REFUSED(small().refusal("causal softcap=x"), "column 16");
  EXPECT_REFUSED(small().refusal("cusal"), "did you mean 'causal'");
}

TEST(TensorsFile, DoublesMustBeFormatNumbersExactly) {
  Builder file;
  file.add<double>("q", Dtype::F64, {1, 1}, {0.5}).f32("k", {1, 1}, {1}).f32("v", {1, 1}, {2});
  EXPECT_EQ(file.read().values.q.at(0), 0.5);
  EXPECT_EQ(file.read().problem.input, Format::f32);
  Builder third;
  third.add<double>("q", Dtype::F64, {1, 2}, {1, 1.0 / 3})
      .f32("k", {1, 2}, {1, 1})
      .f32("v", {1, 1}, {2});
  EXPECT_REFUSED(third.refusal(),
                 "f.safetensors: q: element 1 is 0.33333333333333331, which is no f32");
}

TEST(TensorsFile, AFormatThatIsAskedForMustHoldTheNumbers) {
  Builder file;
  file.f32("q", {1, 1}, {1.0F + 0x1p-8F}).f32("k", {1, 1}, {1}).f32("v", {1, 1}, {2});
  EXPECT_REFUSED(file.refusal("in=bf16"), "which is no bf16 number");
  EXPECT_EQ(file.read("in=f16").values.q.at(0), 1.0 + 0x1p-8);
}

TEST(TensorsFile, HalfFilesStayHalf) {
  const std::vector<std::uint16_t> one{0x3c00}, nan{0x7e01};
  Builder file;
  file.add("q", Dtype::F16, {1, 1}, nan)
      .add("k", Dtype::F16, {1, 1}, one)
      .add("v", Dtype::F16, {1, 1}, one);
  const TensorsFile read = file.read();
  EXPECT_EQ(read.problem.input, Format::f16);
  EXPECT_EQ(read.problem.output, Format::f16);
  EXPECT_EQ(read.values.q.bits(0), 0x7e01U);  // the payload too
  EXPECT_EQ(read.values.k.at(0), 1.0);
  EXPECT_EQ(file.read("out=f32").problem.output, Format::f32);
  Builder mixed;
  mixed.f32("q", {1, 1}, {3}).add("k", Dtype::F16, {1, 1}, one).add("v", Dtype::BF16, {1, 1}, one);
  EXPECT_REFUSED(mixed.refusal(), "q, k and v are stored as F32, F16 and BF16: say in=f32");
  EXPECT_EQ(mixed.read("in=f32").problem.input, Format::f32);
  EXPECT_EQ(mixed.read("in=f32").values.k.at(0), 1.0);
}

TEST(TensorsFile, BiasIsBroadcast) {
  Builder file = small();
  file.f32("bias", {1, 3}, {0, 1, -INFINITY});
  const TensorsFile read = file.read();
  EXPECT_TRUE(read.problem.bias);
  ASSERT_TRUE(read.values.bias);
  EXPECT_EQ(read.values.bias->extent, (Extent4{1, 1, 2, 3}));
  EXPECT_EQ(read.values.bias->at(0, 0, 1, 1), 1);
  EXPECT_EQ(read.values.bias->at(0, 0, 1, 2), -INFINITY);
  Builder column = small();
  column.f32("bias", {2, 1}, {5, 6});
  EXPECT_EQ(column.read().values.bias->at(0, 0, 1, 2), 6);
  Builder wrong = small();
  wrong.f32("bias", {3, 2}, ramp(6));
  EXPECT_REFUSED(wrong.refusal(), "bias: shape [3, 2] does not broadcast");
  Builder nan = small();
  nan.f32("bias", {1}, {NAN});
  EXPECT_REFUSED(nan.refusal(), "legal are finite numbers and -inf");
}

TEST(TensorsFile, SinksAndSlopesAreOnePerHead) {
  Builder file;
  file.f32("q", {2, 1, 1}, ramp(2)).f32("k", {1, 1}, {1}).f32("v", {1, 1}, {1});
  file.f32("sinks", {2}, {0.5F, 1.5F}).f32("slopes", {1, 1, 1, 2}, {0.25F, 0.125F});
  const TensorsFile read = file.read();
  EXPECT_TRUE(read.problem.sinks);
  EXPECT_TRUE(read.problem.alibi);
  EXPECT_EQ(read.values.sinks->at(1), 1.5);
  EXPECT_EQ(read.values.alibi_slopes->at(1), 0.125);
  EXPECT_REFUSED(small().refusal("alibi"), "holds no tensor slopes");
}

TEST(TensorsFile, MasksAreSharedByTheHeads) {
  Builder file = small();
  file.add<std::uint8_t>("mask", Dtype::BOOL, {2, 3}, {1, 0, 1, 0, 1, 0});
  const TensorsFile read = file.read();
  ASSERT_TRUE(read.values.mask);
  EXPECT_TRUE(read.values.mask->at(0, 0, 2));
  EXPECT_FALSE(read.values.mask->at(0, 1, 2));
  Builder two = small();
  two.add<std::uint8_t>("mask", Dtype::U8, {2, 3}, {1, 0, 2, 0, 1, 0});
  EXPECT_REFUSED(two.refusal(), "mask: element 2 is 2; legal are 1 (visible) and 0");
  Builder heads;
  heads.f32("q", {2, 1, 1}, ramp(2)).f32("k", {1, 1}, {1}).f32("v", {1, 1}, {1});
  heads.add<std::uint8_t>("mask", Dtype::BOOL, {1, 2, 1, 1}, {1, 1});
  EXPECT_REFUSED(heads.refusal(), "a mask per head");
}

TEST(TensorsFile, RefusesWhatItWouldHaveToGuess) {
  Builder file;
  file.f32("q", {2, 2}, ramp(4)).f32("k", {3, 2}, ramp(6));
  EXPECT_REFUSED(file.refusal(), "holds no tensor v");
  EXPECT_REFUSED(small().f32("sink", {1}, {1}).refusal(), "did you mean sinks?");
  Builder flat;
  flat.f32("q", {4}, ramp(4)).f32("k", {3, 2}, ramp(6)).f32("v", {3, 1}, ramp(3));
  EXPECT_REFUSED(flat.refusal(), "q: shape [4] has 1 axes");
  Builder big = small();
  big.add<std::int64_t>("kv_len", Dtype::I64, {1}, {(std::int64_t{1} << 53) + 1});
  EXPECT_REFUSED(big.refusal(), "beyond 2^53");
  Builder whole;
  whole.f32("q", {1, 1}, {1}).f32("v", {1, 1}, {1}).add<std::int32_t>("k", Dtype::I32, {1, 1}, {1});
  EXPECT_REFUSED(whole.refusal(), "k is stored as I32, whole numbers");
  EXPECT_REFUSED(whole.refusal("in=f32"), "k is stored as I32, whole numbers");
  EXPECT_REFUSED(small().add<std::int32_t>("o", Dtype::I32, {2, 1}, {1, 1}).refusal(),
                 "o is stored as I32, whole numbers");
  for (const auto& [capital, letter] : {std::pair{"Q", "q"}, {"K", "k"}, {"LSE", "lse"}}) {
    EXPECT_REFUSED(small().f32(capital, {2, 2}, ramp(4)).refusal(),
                   std::string("did you mean ") + letter + "?");
  }
  EXPECT_REFUSED(small().refusal("window=x"), "f.safetensors: in \"window=x");
}

TEST(TensorsFile, ASmallFileCannotAskForALargeBias) {
  Builder file;
  file.f32("q", {20000, 1}, ramp(20000)).f32("k", {20000, 1}, ramp(20000));
  file.f32("v", {20000, 1}, ramp(20000)).f32("bias", {1}, {0});
  EXPECT_REFUSED(file.refusal(), "the largest is bias");
}

TEST(TensorsFile, ScaledCachesAreWrittenAndReadBack) {
  for (const Scales scales : {Scales::tensor, Scales::head, Scales::token}) {
    Problem p = parse_problem("q=2x2x1x3 kv=2x4x2 in=bf16 out=bf16 page=2 order=1");
    p.cache = Format::i8;
    p.scales = scales;
    Values values;
    values.q = Tensor(Format::bf16, {2, 2, 1, 3});
    values.k = Tensor(Format::i8, {2, 2, 4, 3});
    values.v = Tensor(Format::i8, {2, 2, 4, 2});
    for (Index n = 0; n < values.k.count(); ++n) values.k.set(n, static_cast<double>(n) - 100);
    values.k_scales = values.v_scales = Tensor(Format::f32, scales_extent(p, 4));
    for (Index n = 0; n < values.k_scales->count(); ++n) {
      values.k_scales->set(n, 0.5 + static_cast<double>(n));
      values.v_scales->set(n, 0.25);
    }
    const auto path = std::filesystem::path(testing::TempDir()) / "scaled.safetensors";
    write_tensors_file(path, p, values);
    const TensorsFile read = read_tensors_file(path, "");
    EXPECT_EQ(read.problem, p);
    EXPECT_EQ(read.values, values);
    values.v_scales->set(0, 0);
    write_tensors_file(path, p, values);
    EXPECT_THROW(read_tensors_file(path, ""), Error);
    std::filesystem::remove(path);
  }
}

/// The Problem of a file whose scales have this shape.
Problem scaled_file(const std::vector<Index>& shape, std::size_t count, std::string_view line) {
  Builder file;
  const auto ones = [](std::size_t many) { return std::vector<std::uint8_t>(many, 0x38); };
  file.add("q", Dtype::F8_E4M3, {2, 4, 1, 3}, ones(24));
  file.add("k", Dtype::F8_E4M3, {2, 2, 5, 3}, ones(60));
  file.add("v", Dtype::F8_E4M3, {2, 2, 5, 2}, ones(40));
  const std::vector<float> scales(count, 0.5F);
  return file.f32("k_scales", shape, scales).f32("v_scales", shape, scales).read(line).problem;
}

TEST(TensorsFile, ScalesThatAreThereAreInForce) {
  EXPECT_EQ(scaled_file({1, 1, 1, 1}, 1, "").scales, Scales::tensor);
  EXPECT_EQ(scaled_file({1, 2, 1, 1}, 2, "").scales, Scales::head);
  EXPECT_EQ(scaled_file({2, 2, 5, 1}, 20, "").scales, Scales::token);
  EXPECT_EQ(scaled_file({1, 1, 1, 1}, 1, "").cache, Format::e4m3);
  EXPECT_THROW(scaled_file({1, 1, 1, 1}, 1, "scales=none"), Error);
  EXPECT_THROW(scaled_file({1, 1, 2, 1}, 2, ""), Error);
}

TEST(TensorsFile, LengthsMayBeTensors) {
  Builder file;
  file.f32("q", {2, 1, 3, 1}, ramp(6)).f32("k", {2, 1, 4, 1}, ramp(8));
  file.f32("v", {2, 1, 4, 1}, ramp(8)).add<std::int32_t>("kv_len", Dtype::I32, {2}, {4, 2});
  file.add<std::int64_t>("q_len", Dtype::I64, {2}, {0, 3});
  EXPECT_EQ(file.read().problem, parse_problem("q=2x1x3x1 kv=1x4x1 q_len=0,3 kv_len=4,2"));
  EXPECT_EQ(file.read("kv_len=1,1").problem.seqlens_kv, (std::vector<Index>{1, 1}));
  Builder wrong = small();
  wrong.add<std::int32_t>("kv_len", Dtype::I32, {1}, {4});
  EXPECT_REFUSED(wrong.refusal(), "kv_len=4");
}

TEST(TensorsFile, FormatsThatAreThereNeedNotBeSaid) {
  const std::vector<std::uint16_t> ones{0x3f80, 0x3f80};
  Builder file;
  file.add("q", Dtype::BF16, {2, 1}, ones).add("k", Dtype::BF16, {2, 1}, ones);
  file.add("v", Dtype::BF16, {2, 1}, ones).add("o", Dtype::BF16, {2, 1}, ones);
  file.say("problem", "causal").say("precision", "fa2");
  EXPECT_EQ(file.read().problem, parse_problem("q=1x1x2x1 kv=1x2x1 in=bf16 out=bf16 causal"));
  EXPECT_EQ(file.read("out=f32").problem.output, Format::f32);
  EXPECT_EQ(file.read().precision, "fa2");
  EXPECT_EQ(small().read().precision, std::nullopt);
  Builder eight = small();
  eight.add<std::uint8_t>("o", Dtype::F8_E4M3, {2, 1}, {0, 0});
  EXPECT_REFUSED(eight.refusal(), "o is stored as F8_E4M3; outputs are");
}

TEST(TensorsFile, AxesInAnotherOrderAreRecognised) {
  Builder k;
  k.f32("q", {2, 4}, ramp(8)).f32("k", {4, 3}, ramp(12)).f32("v", {3, 1}, ramp(3));
  EXPECT_REFUSED(k.refusal(), "k: shape [1, 1, 4, 3] is transposed");
  Builder v;
  v.f32("q", {2, 4}, ramp(8)).f32("k", {3, 4}, ramp(12)).f32("v", {5, 3}, ramp(15));
  EXPECT_REFUSED(v.refusal(), "v: shape [1, 1, 5, 3] is transposed");
  Builder rows;  // (B, T, H, D)
  rows.f32("q", {1, 5, 2, 1}, ramp(10)).f32("k", {1, 7, 1, 1}, ramp(7));
  rows.f32("v", {1, 7, 1, 1}, ramp(7));
  EXPECT_REFUSED(rows.refusal(), "if the file has rows before heads, say layout=bthd");
  Builder o;
  o.f32("q", {1, 2, 5, 1}, ramp(10)).f32("k", {1, 1, 3, 1}, ramp(3));
  o.f32("v", {1, 1, 3, 1}, ramp(3)).f32("o", {1, 5, 2, 1}, ramp(10));
  EXPECT_REFUSED(o.refusal(), "o: shape [1, 5, 2, 1] is not that of the output");
  EXPECT_REFUSED(o.refusal(), "rows before heads");
}

TEST(TensorsFile, AnLseTellsTheOrderOfAxes) {
  Builder rows;  // (B, T, H, D) of 5 rows and 2 heads, which could be 5 heads of 2 rows
  rows.f32("q", {1, 5, 2, 1}, ramp(10)).f32("k", {1, 5, 2, 1}, ramp(10));
  rows.f32("v", {1, 5, 2, 1}, ramp(10)).f32("lse", {1, 2, 5}, ramp(10));
  EXPECT_REFUSED(rows.refusal(), "rows before heads, say layout=bthd");
  EXPECT_EQ(rows.read("layout=bthd").lse.value().size(), 10U);
  Builder turned;
  turned.f32("q", {1, 5, 2, 1}, ramp(10)).f32("k", {1, 5, 2, 1}, ramp(10));
  turned.f32("v", {1, 5, 2, 1}, ramp(10)).f32("lse", {1, 5, 2}, ramp(10));
  EXPECT_REFUSED(turned.refusal("layout=bthd"), "lse has heads before rows always");
}

TEST(TensorsFile, AnswersAreRead) {
  Builder file = small();
  file.add<double>("o", Dtype::F64, {2, 1}, {0.1, 0.2}).f32("lse", {1, 2}, {3, 4});
  const TensorsFile read = file.read();
  EXPECT_EQ(read.o.value(), (std::vector<double>{0.1, 0.2}));
  EXPECT_EQ(read.lse.value(), (std::vector<double>{3, 4}));
  EXPECT_REFUSED(small().f32("o", {1, 2}, {1, 2}).refusal(), "not that of the output");
  EXPECT_REFUSED(small().f32("lse", {3}, {1, 2, 3}).refusal(), "is not (batch, head, query)");
}

}  // namespace
}  // namespace attest
