// What may be said behind --where, that any drawn case can be brought there, and that a campaign
// judges many cases there and none elsewhere.
#include "fuzz/narrowing.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "fuzz/campaign.hpp"
#include "properties/domains/domain.hpp"
#include "properties/oracle_subject.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

std::string refusal_of(std::string_view text) {
  try {
    require_possible(parse_narrowing(text));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool asked(std::string_view text, std::string_view problem,
           Operation operation = Operation::prefill) {
  return asks_for(parse_narrowing(text), operation, parse_problem(problem));
}

TEST(Narrowing, AsksForWhatItSays) {
  const char* line = "q=2x8x4x64 kv=2x100x64 in=bf16 out=bf16 causal lse=none";
  for (const char* text :
       {"", "  ", "in=bf16", "in=f16,bf16", "head_dim=64 causal", "head_dim=32,64", "seqlen_kv=100",
        "seqlen_kv=1..4096", "seqlen_kv=64..", "keys=1..9,100..200", "no-mask no-window", "gqa",
        "heads=8 kv_heads=2 group=4", "batch=2 queries=4", "no_lse", "lse=none", "cache=bf16"}) {
    EXPECT_TRUE(asked(text, line)) << text;
  }
  for (const char* text :
       {"in=f16", "in=f32,f16", "no-causal", "head_dim=32,128", "seqlen_kv=1..99",
        "seqlen_kv=101..", "mask", "mqa", "group=3", "lse=e,two", "head_dim=64 head_dim_v=32",
        "unequal_depths", "causal mask"}) {
    EXPECT_FALSE(asked(text, line)) << text;
  }
  EXPECT_EQ(parse_narrowing(" in=bf16\t causal ").text, "in=bf16 causal");
}

TEST(Narrowing, OneWidthMeansBoth) {
  EXPECT_FALSE(asked("head_dim=64", "q=1x1x1x64 kv=1x1x32"));
  EXPECT_TRUE(asked("head_dim=64 head_dim_v=32", "q=1x1x1x64 kv=1x1x32"));
  EXPECT_TRUE(asked("head_dim=64 unequal_depths", "q=1x1x1x64 kv=1x1x32"));
}

TEST(Narrowing, WhatMeansNothingToAnOperationLeavesItAsItIs) {
  const char* line = "q=1x1x1x64 kv=1x8x64 in=bf16 out=bf16";
  for (const char* text : {"page=16", "cache=e4m3", "scales=token", "pages", "splits=4", "ring"}) {
    EXPECT_TRUE(asked(text, line, Operation::prefill)) << text;
    EXPECT_FALSE(asked(text, line, Operation::decode)) << text;
  }
  EXPECT_TRUE(asked("causal", line, Operation::append));
  EXPECT_FALSE(asked("in=f16", line, Operation::projection));
}

TEST(Narrowing, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> kRefused[] = {
      {"pge=16", "--where: 'pge' is no attribute; did you mean page? (attest list where)"},
      {"causel", "'causel' is no attribute; did you mean causal?"},
      {"no-causel", "'causel' is no attribute; did you mean causal?"},
      {"quetzal", "--where: 'quetzal' is no attribute (attest list where)"},
      {"causal=1", "causal takes no value; write causal or no-causal"},
      {"head_dim", "head_dim takes a value: head_dim=NUMBER"},
      {"in=bf1", "in: 'bf1' is none of f32, f16, bf16, e4m3, e5m2, i8; did you mean bf16?"},
      {"head_dim=6a", "head_dim: '6a' is no count; write 64, 64,128, 64..128 or 64.."},
      {"head_dim=", "head_dim: '' is no count"},
      {"head_dim=64,", "head_dim: '' is no count"},
      {"head_dim=-4", "head_dim: '-4' is no count"},
      {"head_dim=..4", "head_dim: '' is no count"},
      {"head_dim=9..3", "head_dim: 9..3 ends before it begins"},
      {"head_dim=99999999999999999999", "is no count"},
      {"head_dim=64 head_dim=128", "head_dim is said twice; write a list: head_dim=64,128"},
      {"keys=5 seqlen_kv=5", "seqlen_kv is said twice"},
      {"causal causal", "causal is said twice"},
      {"causal no-causal", "causal and no-causal contradict each other"},
      {"heads=8 kv_heads=5", "no problem is 'heads=8 kv_heads=5'"},
      {"kv_heads=0 group=0 heads=0", "no problem is 'kv_heads=0 group=0 heads=0'"},
      {"ring=8 page=16", "no problem is 'ring=8 page=16': nothing has the ring that is asked"},
  };
  for (const auto& [text, part] : kRefused) {
    EXPECT_NE(refusal_of(text).find(part), std::string::npos) << text << ": " << refusal_of(text);
  }
}

TEST(Narrowing, EveryAttributeCanBeAskedFor) {
  for (const Attribute& attribute : attributes()) {
    EXPECT_FALSE(attribute.what.empty()) << attribute.name;
    const std::string name(attribute.name);
    std::vector<std::string> texts;
    if (attribute.is_word()) texts = {name, "no-" + name};
    if (attribute.set != nullptr) texts = {name + "=24", name + "=20..90", name + "=3,5"};
    if (attribute.names != nullptr) {
      for (const std::string_view value : attribute.names()) {
        const bool narrow = value == "e4m3" || value == "e5m2" || value == "i8";
        const bool legal = !narrow || name == "cache" || (name == "in" && value != "i8");
        if (legal) texts.push_back(fmt::format("{}={}", name, value));
      }
    }
    if (const std::string also(attribute.also); !also.empty()) {
      EXPECT_NO_THROW(parse_narrowing(attribute.is_word() ? also : also + "=1")) << also;
    }
    for (const std::string& text : texts) EXPECT_EQ(refusal_of(text), "") << text;
  }
}

TEST(Narrowing, DrawnCasesAreBroughtInside) {
  for (const char* text :
       {"in=bf16 head_dim=64 causal", "head_dim=72", "seqlen_kv=777", "page=24",
        "page=256 cache=e4m3 scales=token", "seqlen_kv=100..200 seqlen_q=1 gqa no-window",
        "bias alibi softcap sinks", "lse=none layout=bthd out=f32",
        "batch=4 num_heads_q=32 group=8", "splits=3 in=f16", "lengths strided"}) {
    const Narrowing where = parse_narrowing(text);
    for (const auto& [property, operation] : {std::pair{"oracle_agreement", Operation::prefill},
                                              std::pair{"decode_agreement", Operation::decode}}) {
      for (std::uint64_t index = 0; index < 300; ++index) {
        const Case drawn = draw_case(property, 5, index);
        const Case made = brought(drawn, property, where);
        EXPECT_TRUE(asks_for(where, operation, made.problem)) << text << ": " << print(made);
        EXPECT_EQ(invalidity(made.problem), "") << text << ": " << print(made);
        if (asks_for(where, operation, drawn.problem)) {
          EXPECT_EQ(made, drawn);
        }
      }
    }
  }
}

TEST(Narrowing, ValuesOfARangeAreAllDrawn) {
  const Narrowing where = parse_narrowing("seqlen_kv=1000..1040");
  std::set<Index> keys;
  for (std::uint64_t index = 0; index < 600; ++index) {
    keys.insert(brought(draw_case("oracle_agreement", 5, index), "oracle_agreement", where)
                    .problem.seqlen_kv);
  }
  EXPECT_EQ(keys.size(), 41U);
}

TEST(Narrowing, WhatAPropertyNeedsIsNotTakenFromIt) {
  const Narrowing where = parse_narrowing("causal batch=1 page=256");
  for (std::uint64_t index = 0; index < 100; ++index) {
    const Case drawn = draw_case("variance_scaling", 5, index);
    EXPECT_EQ(brought(drawn, "variance_scaling", where), drawn);
    EXPECT_EQ(brought(draw_case("copied_pages", 5, index), "copied_pages", where).problem.page_size,
              256);
  }
}

/// What the oracle was asked, and how often: all of it must be asked for.
Subject watched(const Narrowing& where, std::atomic<std::uint64_t>& questions) {
  Subject subject = oracle_subject();
  subject.call = [&where, &questions, inner = subject.call](const Request& request, Poison poison) {
    std::visit(
        [&](const auto& asked) {
          if constexpr (!std::is_same_v<decltype(asked), const Project&>) {
            EXPECT_TRUE(asks_for(where, operation_of(asked), asked.problem))
                << print(asked.problem);
            ++questions;
          }
        },
        request);
    return inner(request, poison);
  };
  return subject;
}

TEST(Narrowing, ACampaignJudgesManyCasesAndAllOfThemInside) {
  for (const char* text :
       {"in=bf16 head_dim=64 causal seqlen_kv=1..64", "page=24 cache=e4m3 scales=token"}) {
    std::atomic<std::uint64_t> questions = 0;
    CampaignOptions options;
    options.where = parse_narrowing(text);
    options.properties = {
        "oracle_agreement", "decode_agreement",        "row_sums",    "cached_equals_recomputed",
        "causality",        "append_writes_its_slots", "copied_pages"};
    options.budget_cases = 210;
    const std::atomic<bool> stop = false;
    const attest::Run run =
        run_campaign([&] { return watched(options.where, questions); }, options, {}, stop);
    EXPECT_EQ(run.where, text);
    EXPECT_EQ(run.error, "");
    EXPECT_TRUE(run.findings.empty()) << run.findings[0].verdict.why;
    EXPECT_GE(run.judged(), 200U) << text;
    EXPECT_GE(questions, run.judged()) << text;
    for (const PropertyTally& tally : run.tallies) {
      if (!property_named(tally.property).central_to) continue;
      EXPECT_GE(tally.judged(), 29U) << text << ": " << tally.property;
    }
  }
}

}  // namespace
}  // namespace attest
