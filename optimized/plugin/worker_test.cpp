// Everything a correct plugin is sent arrives where it belongs, and everything it answers comes
// back.
#include "optimized/plugin/worker.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "optimized/plugin/fault_kinds.hpp"
#include "optimized/plugin/testing/test_cases.hpp"

namespace attest {
namespace {

Problem small_problem() {
  Problem problem;
  problem.batch = 2;
  problem.num_heads_q = 4;
  problem.num_heads_kv = 2;
  problem.seqlen_q = 3;
  problem.seqlen_kv = 5;
  problem.head_dim = 6;
  problem.head_dim_v = 6;
  return problem;
}

Index length_of(const std::vector<Index>& lengths, Index b, Index full) {
  return lengths.empty() ? full : lengths[static_cast<std::size_t>(b)];
}

// What echoes.c computes in prefill, from the values as they were sent.
double echoed_lse(const Problem& p, const Values& values, Index b, Index h, Index i) {
  double sum = 0;
  for (Index j = 0; j < length_of(p.seqlens_kv, b, p.seqlen_kv); ++j) {
    sum += values.k.at(b, h / (p.num_heads_q / p.num_heads_kv), j, 0);
    if (values.bias) sum += values.bias->at(b, h, i, j);
    if (values.mask) sum += values.mask->at(b, i, j) ? 1 : 0;
  }
  if (values.alibi_slopes) sum += values.alibi_slopes->at(h);
  if (values.sinks) sum += values.sinks->at(h);
  return sum;
}

void expect_decoded_echo(Subject& subject, const Problem& p, Poison poison) {
  const Values values = counting_values(p);
  const Reply decode = subject.call(Attend{Operation::decode, p, values}, poison);
  ASSERT_FALSE(decode.fault) << decode.fault->kind << ": " << decode.fault->what;
  for (Index b = 0; b < p.batch; ++b) {
    const Index rows = length_of(p.seqlens_q, b, p.seqlen_q);
    const Index last = length_of(p.seqlens_kv, b, p.seqlen_kv) - 1;
    for (Index h = 0; h < p.num_heads_q; ++h) {
      const Index g = h / (p.num_heads_q / p.num_heads_kv);
      double lse = static_cast<double>(p.num_splits);
      if (p.scales != Scales::none) {
        lse += scale_at(values.k_scales, b, g, last) + scale_at(values.v_scales, b, g, last);
      }
      for (Index i = 0; i < p.seqlen_q; ++i) {
        for (Index column = 0; column < p.head_dim_v; ++column) {
          ASSERT_EQ(decode.o.bits(decode.o.offset(b, h, i, column)),
                    i < rows ? values.v.bits(values.v.offset(b, g, last, column)) : 0);
        }
        ASSERT_EQ(decode.lse.at(b, h, i, 0), i < rows ? lse : 0);
      }
    }
  }
}

void expect_echo(Subject& subject, const Problem& p, Poison poison) {
  const Values values = counting_values(p);
  const Reply prefill = subject.call(Attend{Operation::prefill, p, values}, poison);
  ASSERT_FALSE(prefill.fault) << prefill.fault->kind << ": " << prefill.fault->what;
  ASSERT_EQ(prefill.o.extent, (Extent4{p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}));
  ASSERT_EQ(prefill.lse.extent, (Extent4{p.batch, p.num_heads_q, p.seqlen_q, 1}));
  EXPECT_EQ(prefill.o.format, p.output);
  EXPECT_EQ(prefill.lse.format, Format::f32);
  expect_decoded_echo(subject, p, poison);
  for (Index b = 0; b < p.batch; ++b) {
    const Index rows = length_of(p.seqlens_q, b, p.seqlen_q);
    for (Index h = 0; h < p.num_heads_q; ++h) {
      for (Index i = 0; i < p.seqlen_q; ++i) {
        for (Index column = 0; column < p.head_dim_v; ++column) {
          ASSERT_EQ(prefill.o.at(b, h, i, column), i < rows ? values.q.at(b, h, i, column) : 0);
        }
        if (p.input != Format::f32) continue;
        ASSERT_EQ(prefill.lse.at(b, h, i, 0), i < rows ? echoed_lse(p, values, b, h, i) : 0);
      }
    }
  }
}

TEST(Worker, DescribesThePlugin) {
  const Subject subject = open_plugin(options_for("echoes"));
  EXPECT_EQ(subject.description.name, "echoes");
  EXPECT_EQ(subject.description.numerics, "host");
  EXPECT_EQ(subject.description.precision.p_format, Format::bf16);
  EXPECT_EQ(subject.description.precision.keys_per_rescale, 64);
  EXPECT_EQ(subject.description.precision.exp_error, 0.25);
  EXPECT_TRUE(subject.description.batch_invariant);
  EXPECT_FALSE(subject.description.deterministic);
}

TEST(Worker, CarriesEveryLayoutPoisonAndOption) {
  Subject subject = open_plugin(options_for("echoes"));
  for (const Layout layout : {Layout::bhtd, Layout::bthd}) {
    for (const Poison poison : {Poison::nan, Poison::huge, Poison::small}) {
      for (const Index spare : {0, 3}) {
        for (const bool options : {false, true}) {
          Problem p = small_problem();
          p.layout = layout;
          p.spare_slots = spare;
          p.num_splits = 2;
          p.bias = p.alibi = p.sinks = p.mask = options;
          if (options) {
            p.seqlens_q = {2, 3};
            p.seqlens_kv = {5, 1};
          }
          expect_echo(subject, p, poison);
        }
      }
    }
  }
}

/// Over some 25 GiB of address space for each tensor, under a worker's usual limit of memory.
TEST(Worker, CarriesTensorsThatLieFarApart) {
  Subject subject = open_plugin(options_for("echoes"));
  for (const Layout layout : {Layout::bhtd, Layout::bthd}) {
    for (const Index batch : {2, 1}) {
      for (const Index heads : {2, 1}) {
        Problem p = small_problem();
        p.layout = layout;
        p.batch = batch;
        p.num_heads_q = p.num_heads_kv = heads;
        p.bias = p.mask = true;
        p.spare_slots = 3;
        p.strided = (1U << kStridedWords) - 1;
        ASSERT_EQ(subject.declines(Operation::prefill, p), std::nullopt);
        expect_echo(subject, p, Poison::nan);
        p.page_size = 2;
        p.page_order = 3;
        p.spare_slots = 0;
        expect_decoded_echo(subject, p, Poison::huge);
      }
    }
  }
}

TEST(Worker, CarriesEveryFormat) {
  Subject subject = open_plugin(options_for("echoes"));
  for (const Format format : {Format::f32, Format::f16, Format::bf16, Format::e4m3, Format::e5m2}) {
    for (const Layout layout : {Layout::bhtd, Layout::bthd}) {
      Problem p = small_problem();
      p.input = p.output = format;
      p.layout = layout;
      p.spare_slots = 1;
      expect_echo(subject, p, Poison::nan);
    }
  }
}

TEST(Worker, CarriesPagesInAnyOrderAndRings) {
  Subject subject = open_plugin(options_for("echoes"));
  for (const Layout layout : {Layout::bhtd, Layout::bthd}) {
    for (const Poison poison : {Poison::nan, Poison::huge, Poison::small}) {
      for (const Index page_size : {1, 3, 4, 16}) {
        Problem p = small_problem();
        p.layout = layout;
        p.page_size = page_size;
        p.page_order = page_size - 1;
        p.spare_slots = page_size % 3;
        expect_echo(subject, p, poison);
        p.seqlens_kv = {5, 2};
        expect_echo(subject, p, poison);
      }
      Problem p = small_problem();
      p.layout = layout;
      p.window_left = 1;
      p.ring = 4;
      p.seqlen_kv = 6;
      p.seqlens_kv = {6, 3};
      expect_decoded_echo(subject, p, poison);
    }
  }
}

TEST(Worker, CarriesScaledCaches) {
  Subject subject = open_plugin(options_for("echoes"));
  for (const Format format : {Format::e4m3, Format::e5m2, Format::i8}) {
    for (const Scales scales : {Scales::tensor, Scales::head, Scales::token}) {
      for (const Index page_size : {0, 2}) {
        Problem p = small_problem();
        p.input = Format::f16;
        p.cache = format;
        p.output = Format::e4m3;  // as wide as what is copied into it
        p.scales = scales;
        p.page_size = page_size;
        p.page_order = 5;
        p.seqlens_kv = {5, 4};
        expect_decoded_echo(subject, p, Poison::nan);
      }
    }
  }
}

TEST(Worker, CarriesEmptyAndLargeTensors) {
  Subject subject = open_plugin(options_for("echoes"));
  Problem p = small_problem();
  p.seqlen_q = 0;
  expect_echo(subject, p, Poison::nan);
  p.seqlen_q = 1;
  p.seqlen_kv = 40'000;  // several times the first size of the shared memory
  expect_echo(subject, p, Poison::nan);
  expect_echo(subject, small_problem(), Poison::nan);
}

TEST(Worker, AppendsInBothLayouts) {
  Subject subject = open_plugin(options_for("echoes"));
  for (const Layout layout : {Layout::bhtd, Layout::bthd}) {
    Problem p;
    p.layout = layout;
    CacheUpdate update;
    update.k = counting(Format::bf16, {2, 3, 7, 4}, 0);
    update.v = counting(Format::bf16, {2, 3, 7, 5}, 1);
    update.new_k = counting(Format::bf16, {2, 3, 2, 4}, 100);
    update.new_v = counting(Format::bf16, {2, 3, 2, 5}, 101);
    update.cache_seqlens = {3, 6};
    update.new_seqlens = {1, 2};  // the second row of entry 1 does not fit and is dropped
    const Reply reply = subject.call(Append{p, update}, Poison::nan);
    ASSERT_FALSE(reply.fault) << reply.fault->what;
    Tensor k = update.k, v = update.v;
    for (Index h = 0; h < 3; ++h) {
      for (Index c = 0; c < 5; ++c) {
        if (c < 4)
          k.set_bits(k.offset(0, h, 3, c), update.new_k.bits(update.new_k.offset(0, h, 0, c)));
        if (c < 4)
          k.set_bits(k.offset(1, h, 6, c), update.new_k.bits(update.new_k.offset(1, h, 0, c)));
        v.set_bits(v.offset(0, h, 3, c), update.new_v.bits(update.new_v.offset(0, h, 0, c)));
        v.set_bits(v.offset(1, h, 6, c), update.new_v.bits(update.new_v.offset(1, h, 0, c)));
      }
    }
    EXPECT_EQ(reply.k, k);
    EXPECT_EQ(reply.v, v);
  }
}

// Slot by slot, whatever pages it is on; and scales per token with it.
TEST(Worker, AppendsToPagesAndRings) {
  Subject subject = open_plugin(options_for("echoes"));
  for (const Index page_size : {0, 1, 3, 4}) {
    Problem p = small_problem();
    p.input = Format::e4m3;
    p.cache = Format::e4m3;
    p.scales = Scales::token;
    p.page_size = page_size;
    p.page_order = 2;
    p.ring = page_size == 0 ? 7 : 0;
    p.layout = Layout::bthd;
    p.rope = Rope::pairs;
    CacheUpdate update;
    update.k = counting(Format::e4m3, {2, 3, 7, 4}, 0);
    update.v = counting(Format::e4m3, {2, 3, 7, 5}, 1);
    update.new_k = counting(Format::e4m3, {2, 3, 2, 4}, 100);
    update.new_v = counting(Format::e4m3, {2, 3, 2, 5}, 101);
    p.num_heads_kv = 3;
    update.k_scales = update.v_scales = counting(Format::f32, scales_extent(p, 7), 9);
    update.rope_cos_sin = Tensor(Format::f32, {1, 1, 9, 4});
    update.cache_seqlens = {3, 6};
    update.new_seqlens = {1, 2};  // the second row of entry 1 does not fit, but in a ring
    const Reply reply = subject.call(Append{p, update}, Poison::huge);
    ASSERT_FALSE(reply.fault) << reply.fault->what;
    Tensor k = update.k, v = update.v, k_scales = *update.k_scales, v_scales = *update.v_scales;
    for (Index h = 0; h < 3; ++h) {
      for (const auto& [b, slot, row, token] :
           {std::array<Index, 4>{0, 3, 0, 3}, {1, 6, 0, 6}, {1, 0, 1, 7}}) {
        if (token == 7 && p.ring == 0) continue;
        for (Index c = 0; c < 5; ++c) {
          if (c < 4) k.set(b, h, slot, c, update.new_k.at(b, h, row, c));
          v.set(b, h, slot, c, update.new_v.at(b, h, row, c));
        }
        k_scales.set(b, h, slot, 0, static_cast<double>(token));
        v_scales.set(b, h, slot, 0, static_cast<double>(token) + 0.5);
      }
    }
    EXPECT_EQ(reply.k, k) << page_size;
    EXPECT_EQ(reply.v, v) << page_size;
    EXPECT_EQ(reply.k_scales, k_scales) << page_size;
    EXPECT_EQ(reply.v_scales, v_scales) << page_size;
  }
}

TEST(Worker, CopiesPages) {
  Subject subject = open_plugin(options_for("echoes"));
  for (const Layout layout : {Layout::bhtd, Layout::bthd}) {
    Problem p;
    p.layout = layout;
    p.page_size = 2;
    const PageCopy copy{counting(Format::i8, {5, 3, 2, 4}, -100),
                        counting(Format::i8, {5, 3, 2, 6}, -120),
                        {{0, 3}, {0, 1}, {4, 2}}};
    const Reply reply = subject.call(CopyPages{p, copy}, Poison::nan);
    ASSERT_FALSE(reply.fault) << reply.fault->what;
    Tensor k = copy.k, v = copy.v;
    for (const PageCopy::Pair& pair : copy.pairs) {
      for (Tensor* tensor : {&k, &v}) {
        const Index page = tensor->count() / 5;
        for (Index n = 0; n < page; ++n) {
          tensor->set_bits(pair.to * page + n, tensor->bits(pair.from * page + n));
        }
      }
    }
    EXPECT_EQ(reply.k, k);
    EXPECT_EQ(reply.v, v);
  }
}

TEST(Worker, Projects) {
  Subject subject = open_plugin(options_for("echoes"));
  const Projection projection{counting(Format::f32, {2, 1, 3, 4}, 0),
                              counting(Format::f32, {1, 1, 4, 5}, 1), Format::f32,
                              counting(Format::f32, {1, 1, 1, 5}, 20)};
  const Reply reply = subject.call(Project{projection}, Poison::huge);
  ASSERT_FALSE(reply.fault) << reply.fault->what;
  ASSERT_EQ(reply.y.extent, (Extent4{2, 1, 3, 5}));
  for (Index b = 0; b < 2; ++b) {
    for (Index row = 0; row < 3; ++row) {
      for (Index column = 0; column < 5; ++column) {
        double sum = projection.bias->at(column);
        for (Index inner = 0; inner < 4; ++inner) {
          sum += projection.x.at(b, 0, row, inner) * projection.w.at(0, 0, inner, column);
        }
        EXPECT_EQ(reply.y.at(b, 0, row, column), sum);
      }
    }
  }
}

TEST(Worker, DeclinesWhatIsNotOfferedOrCannotBeStated) {
  Subject subject = open_plugin(options_for("misbehaves"));
  Problem p;
  EXPECT_EQ(subject.declines(Operation::prefill, p), std::nullopt);
  EXPECT_EQ(subject.declines(Operation::decode, p), "the plugin offers no decode");
  EXPECT_FALSE(offers(subject, Operation::decode));
  p.sinks = true;
  EXPECT_EQ(subject.declines(Operation::prefill, p), "no sinks here");
  EXPECT_EQ(subject.declines(Operation::prefill, p), "no sinks here");  // from memory
  p.sinks = false;
  EXPECT_EQ(subject.declines(Operation::prefill, p), std::nullopt);
  p.softcap = 0.1;  // no f32 number
  EXPECT_NE(subject.declines(Operation::prefill, p), std::nullopt);
}

}  // namespace
}  // namespace attest
