// The domains: every draw is legal, affordable and repeatable, and nothing that matters is missing
// from the first two thousand.
#include "properties/domains/domain.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "properties/domains/hard_cases.hpp"
#include "properties/fills.hpp"
#include "properties/property.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

constexpr std::uint64_t kDraws = 2000;

double work_of(const Problem& p) {
  return static_cast<double>(p.batch * p.num_heads_q) * static_cast<double>(p.seqlen_q) *
         static_cast<double>(p.seqlen_kv) * static_cast<double>(p.head_dim + p.head_dim_v);
}

TEST(Domain, DrawsAreLegalAffordableAndRoundTrip) {
  for (const Property& property : catalogue()) {
    std::vector<double> works;
    for (std::uint64_t index = 0; index < kDraws; ++index) {
      const Case drawn = draw_case(property.name, 1, index);
      ASSERT_EQ(invalidity(drawn.problem), "") << property.name << " " << index;
      ASSERT_EQ(parse_case(print(drawn)), drawn) << print(drawn);
      works.push_back(work_of(drawn.problem));
    }
    std::sort(works.begin(), works.end());
    // Statistics need a thousand rows, whatever they cost; squares stand out at lengths only.
    const bool rows = property.name == "variance_scaling",
               lengths = property.name == "no_score_matrix";
    EXPECT_LE(works[kDraws / 2], rows || lengths ? 4e5 : 5e4) << property.name;
    EXPECT_LE(works[kDraws * 95 / 100], lengths ? 4e6 : 1e6) << property.name;
    EXPECT_LE(works.back(), lengths ? 1e7 : 4e6) << property.name;
  }
}

TEST(Domain, ACaseIsAFunctionOfSeedIndexAndProperty) {
  const Case first = draw_case("causality", 3, 500);
  draw_case("causality", 3, 501);
  draw_case("row_sums", 3, 500);
  EXPECT_EQ(draw_case("causality", 3, 500), first);
  EXPECT_NE(draw_case("causality", 4, 500), first);
  EXPECT_NE(draw_case("causality", 3, 501), first);
  EXPECT_NE(draw_case("row_sums", 3, 500), first);
  // A campaign's draws must stay what they are, on every machine.
  EXPECT_EQ(print(draw_case("oracle_agreement", 1, 1000)),
            "q=1x1x7x16 kv=1x21x3 fill=ramp seed=2731806066");
  EXPECT_EQ(print(draw_case("decode_agreement", 1, 1000)),
            "q=1x15x3x192 kv=5x12x72 in=bf16 causal window=7,inf sinks q_len=3 empty=nan lse=two "
            "fill=duplicate_keys seed=4038267206");
}

TEST(Domain, ThreadsMayDrawAtOnce) {
  const auto draw_many = [](std::vector<Case>& cases) {
    for (std::uint64_t index = 0; index < 500; ++index) {
      cases.push_back(draw_case("oracle_agreement", 8, index));
    }
  };
  std::vector<Case> alone, first, second;
  draw_many(alone);
  std::thread other([&] { draw_many(first); });
  draw_many(second);
  other.join();
  EXPECT_EQ(first, alone);
  EXPECT_EQ(second, alone);
}

TEST(Domain, HardCasesComeFirstAndAreLegal) {
  for (const Property& property : catalogue()) {
    const auto hard = hard_cases(property.name);
    EXPECT_FALSE(hard.empty()) << property.name;
    EXPECT_LE(hard.size(), 54U) << property.name
                                << ": a default gate tries so many (fuzz/plan.cpp)";
    for (std::size_t n = 0; n < hard.size(); ++n) {
      const Case drawn = draw_case(property.name, 99, n);
      EXPECT_EQ(invalidity(drawn.problem), "") << hard[n];
      EXPECT_EQ(drawn, parse_case(hard[n]));
    }
  }
}

TEST(Domain, HardCasesOfEveryKindAreAmongTheFirst) {
  for (const char* property : {"oracle_agreement", "decode_agreement", "append_writes_its_slots",
                               "projection_agreement", "row_sums"}) {
    std::set<bool> wide_formats, large;
    for (std::uint64_t n = 0; n < 12; ++n) {
      const Problem p = draw_case(property, 1, n).problem;
      wide_formats.insert(p.input == Format::f32);
      large.insert(p.batch > 8 || p.head_dim > 128 || p.seqlen_kv > 1024);
    }
    EXPECT_EQ(wide_formats.size(), 2U) << property;
    EXPECT_EQ(large.size(), 2U) << property;
  }
}

/// What a kernel for tensor cores takes: 16-bit rows of whole 16 bytes.
bool for_matrix_units(const Problem& p) {
  return (p.input == Format::f16 || p.input == Format::bf16) && p.head_dim % 8 == 0 &&
         p.head_dim_v % 8 == 0;
}

TEST(Domain, AFifthOfTheCasesOfEveryPropertyIsForMatrixUnits) {
  for (const Property& property : catalogue()) {
    std::uint64_t count = 0;
    for (std::uint64_t index = 0; index < kDraws; ++index) {
      if (for_matrix_units(draw_case(property.name, 1, index).problem)) ++count;
    }
    EXPECT_GE(count, kDraws / 5) << property.name;
  }
}

std::set<std::string> cache_features_of(const Problem& p) {
  std::set<std::string> found;
  if (p.page_size > 0) {
    found.insert("page " + std::to_string(p.page_size));
    found.insert("order " + std::to_string(p.page_order));
  }
  if (p.ring > 0) found.insert(p.seqlen_kv > p.ring ? "ring overwritten" : "ring");
  found.insert("rope " + std::string(name_of(p.rope)));
  if (!p.cache) return found;
  const std::string format = "cache " + std::string(name_of(*p.cache));
  found.insert(format);
  found.insert(format + " scales " + std::string(name_of(p.scales)));
  if (p.page_size > 0 && p.scales == Scales::token && p.num_splits > 1) found.insert("all at once");
  return found;
}

/// Everything about a case that somebody may be glad was tried.
std::set<std::string> features_of(const Case& c) {
  const Problem& p = c.problem;
  std::set<std::string> found{"fill " + c.fill};
  const auto note = [&](bool so, const std::string& name) {
    if (so) found.insert(name);
  };
  note(p.causal, "causal");
  note(p.alignment == Alignment::top_left, "top_left");
  note(p.window_left != kUnbounded, "window_left");
  note(p.window_right != kUnbounded, "window_right");
  note(p.window_left == 0, "window of one");
  note(p.bias, "bias");
  note(p.alibi, "alibi");
  note(p.sinks, "sinks");
  note(p.mask, "mask");
  note(p.mask && p.causal, "mask and causal");
  note(p.softcap > 0, "softcap");
  note(p.lse_base == LogBase::two, "base two");
  note(p.empty_row == EmptyRow::nan, "empty rows NaN");
  note(p.layout == Layout::bthd, "bthd");
  note(p.spare_slots > 0, "spare");
  note(p.spare_slots == 0 && p.chunk > 1, "capacity full");
  note(p.spare_slots >= p.chunk && p.chunk > 255, "room for over 255 tokens");
  note(p.bias && c.fill == "low_bias", "low bias");
  note(p.num_splits > (p.seqlen_kv + 15) / 16, "empty splits");
  note(p.num_splits > 1 && p.sinks, "splits and sinks");
  note(p.seqlen_kv == 0, "no keys");
  note(p.seqlen_q > p.seqlen_kv, "Tq > Tk");
  note(p.seqlen_q < p.seqlen_kv, "Tq < Tk");
  note(p.seqlen_q == p.seqlen_kv, "Tq == Tk");
  note(p.head_dim != p.head_dim_v, "d_k != d_v");
  note(p.softmax_scale != default_scale(p.head_dim), "other scale");
  note(p.softmax_scale < 0, "negative scale");
  note(p.output != p.input, "other output format");
  note(p.num_splits >= 16, "many splits");
  note(p.num_splits > 8 && p.num_splits > p.seqlen_kv, "many splits, few keys");
  note(p.softcap > 0 && p.softcap < 1, "small cap");
  note(p.softcap > 50, "large cap");
  note(p.softmax_scale > 2.5F, "large scale");
  note(p.window_left > 64, "wide window_left");
  note(p.window_right > 16, "wide window_right");
  note(p.seqlen_kv >= 512 && p.seqlen_kv % 2 == 0, "many keys");
  note(p.seqlen_kv % 48 == 0 && p.seqlen_kv > 0, "keys in 48s");
  note(p.seqlen_q >= 512, "many queries");
  note(p.input == Format::bf16 && p.output == Format::f32 && p.head_dim > 128, "wide bf16 to f32");
  if (for_matrix_units(p)) {
    for (const Index extent : {p.seqlen_q, p.seqlen_kv}) {
      note(extent >= 63 && extent <= 129, "matrix units, " + std::to_string(extent));
    }
  }
  found.merge(cache_features_of(p));
  found.insert("batch " + std::to_string(p.batch));
  for (const Index length : p.seqlens_kv) {
    note(length > 0 && length % 128 == 0, "length in 128s");
    note(length == 127, "length 127");
  }
  for (const Index length : p.seqlens_kv) note(length == 0, "empty sequence");
  for (const Index length : p.seqlens_q) note(length == 0, "no query");
  note(!p.seqlens_q.empty(), "query lengths");
  found.insert("in " + std::string(name_of(p.input)));
  found.insert("group " + std::to_string(p.num_heads_q / p.num_heads_kv));
  found.insert("kv_heads " + std::to_string(p.num_heads_kv));
  found.insert("head_dim " + std::to_string(p.head_dim));
  found.insert("queries " + std::to_string(p.seqlen_q));
  found.insert("keys " + std::to_string(p.seqlen_kv));
  found.insert("chunk " + std::to_string(p.chunk));
  return found;
}

TEST(Domain, EverythingThatMattersOccurs) {
  std::set<std::string> found;
  for (const Property& property : catalogue()) {
    for (std::uint64_t index = 0; index < kDraws; ++index) {
      found.merge(features_of(draw_case(property.name, 1, index)));
    }
  }
  std::vector<std::string> wanted = {"causal",         "top_left",
                                     "window_left",    "window_right",
                                     "window of one",  "bias",
                                     "alibi",          "sinks",
                                     "mask",           "mask and causal",
                                     "softcap",        "base two",
                                     "empty rows NaN", "bthd",
                                     "spare",          "capacity full",
                                     "empty splits",   "splits and sinks",
                                     "no keys",        "Tq > Tk",
                                     "Tq < Tk",        "Tq == Tk",
                                     "d_k != d_v",     "other scale",
                                     "negative scale", "other output format",
                                     "empty sequence", "no query",
                                     "query lengths",  "in f32",
                                     "in f16",         "in bf16",
                                     "in e4m3",        "in e5m2",
                                     "chunk 1",        "chunk 17"};
  wanted.insert(wanted.end(), {"many splits", "many splits, few keys", "small cap", "large cap",
                               "large scale", "wide window_left", "wide window_right", "many keys",
                               "keys in 48s", "many queries", "wide bf16 to f32", "length in 128s",
                               "length 127", "room for over 255 tokens", "low bias"});
  for (const int page : {1, 3, 4, 16, 32, 64, 128, 256, 512})
    wanted.push_back("page " + std::to_string(page));
  for (const int order : {0, 1, 5}) wanted.push_back("order " + std::to_string(order));
  wanted.insert(wanted.end(), {"ring", "ring overwritten", "rope halves", "rope pairs", "cache f32",
                               "cache f16", "cache bf16", "all at once"});
  for (const std::string narrow : {"cache e4m3", "cache e5m2", "cache i8"}) {
    for (const std::string scales : {"none", "tensor", "head", "token"}) {
      wanted.push_back(narrow + " scales " + scales);
    }
  }
  for (const int edge : {63, 64, 65, 127, 128, 129}) {
    wanted.push_back("matrix units, " + std::to_string(edge));
  }
  for (int n = 1; n <= 16; ++n) wanted.push_back("group " + std::to_string(n));
  for (const int n : {32, 64, 128}) wanted.push_back("group " + std::to_string(n));
  for (const int n : {1, 2, 3, 4, 5, 6, 8, 16}) wanted.push_back("kv_heads " + std::to_string(n));
  for (int n = 1; n <= 9; ++n) wanted.push_back("batch " + std::to_string(n));
  for (const int n : {16, 17, 32, 33, 64}) wanted.push_back("batch " + std::to_string(n));
  for (const Fill& fill : fills()) wanted.push_back("fill " + std::string(fill.name));
  for (const int head_dim :
       {1, 2, 3, 5, 8, 16, 20, 24, 32, 40, 64, 65, 80, 96, 128, 192, 250, 256, 320, 512, 576}) {
    wanted.push_back("head_dim " + std::to_string(head_dim));
  }
  for (const int extent : {1,  2,   3,   15,  16,  17,  31,  32,  33,  48,   63,   64,   65,  96,
                           99, 127, 128, 129, 255, 256, 257, 512, 513, 1024, 1025, 2048, 4096}) {
    wanted.push_back("queries " + std::to_string(extent));
    wanted.push_back("keys " + std::to_string(extent));
  }
  for (const std::string& feature : wanted) EXPECT_TRUE(found.count(feature) == 1) << feature;
}

/// Sizes for which kernels have instances, loops or index types of their own.
std::vector<std::string> large_sizes_of(const Problem& p) {
  std::vector<std::string> found;
  const auto note = [&](bool so, const char* name) {
    if (so) found.emplace_back(name);
  };
  note(p.batch > 8, "batch over 8");
  note(p.batch > 32, "batch over 32");
  note(p.num_heads_kv % 4 == 0, "KV heads in 4s");
  note(p.num_heads_kv >= 8, "8 KV heads");
  note(p.num_heads_q / p.num_heads_kv >= 16, "group of 16");
  note(p.num_heads_q / p.num_heads_kv >= 64, "group of 64");
  note(p.seqlen_kv > 1024, "over 1,024 keys");
  note(p.seqlen_kv > 32768, "over 32,768 keys");
  note(p.seqlen_q > 512, "over 512 queries");
  note(p.batch * p.num_heads_q * p.seqlen_q >= 10'000, "10,000 rows");
  note(p.head_dim == 192, "width 192");
  note(p.head_dim > 128 && p.head_dim <= 256, "wide");
  note(p.head_dim > 256, "wider than 256");
  note(p.page_size >= 128, "page of 128");
  note(p.page_size == 512, "page of 512");
  return found;
}

TEST(Domain, LargeSizesOccurForEveryOperationAndBothKindsOfKernel) {
  const std::vector<std::string> attention = {
      "batch over 8", "batch over 32",   "KV heads in 4s",   "8 KV heads",  "group of 16",
      "group of 64",  "over 1,024 keys", "over 32,768 keys", "10,000 rows", "width 192",
      "wide",         "wider than 256"};
  const std::vector<std::string> caches = {"batch over 8", "KV heads in 4s", "8 KV heads",
                                           "width 192",    "wide",           "wider than 256",
                                           "page of 128",  "page of 512"};
  const std::map<std::string, std::vector<std::string>> wanted = {
      {"oracle_agreement", attention},
      {"decode_agreement", attention},
      {"append_writes_its_slots", caches},
      {"copied_pages", caches},
      {"projection_agreement",
       {"batch over 8", "over 1,024 keys", "over 512 queries", "wide", "wider than 256"}}};
  for (const auto& [property, names] : wanted) {
    std::map<std::string, int> found;  // two letters for the kind, then the size
    for (std::uint64_t index = 0; index < kDraws; ++index) {
      const Problem p = draw_case(property, 1, index).problem;
      for (const std::string& name : large_sizes_of(p)) {
        ++found[(for_matrix_units(p) ? "matrix units, " : "others, ") + name];
      }
    }
    for (const std::string& name : names) {
      for (const std::string kind : {"matrix units, ", "others, "}) {
        EXPECT_GE(found[kind + name], 3) << property << ": " << kind << name;
      }
    }
  }
}

}  // namespace
}  // namespace attest
