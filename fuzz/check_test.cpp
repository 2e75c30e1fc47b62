// Lines of checks, digests, and what a watched subject is seen to do.
#include "fuzz/check.hpp"

#include <gtest/gtest.h>

#include "fuzz/testing/fake_world.hpp"
#include "properties/domains/domain.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

std::string message_of(std::string_view line) {
  try {
    parse_check(line);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(Check, LineRoundTrips) {
  for (std::uint64_t index = 0; index < 100; ++index) {
    const PropertyCase check{"second", draw_case("second", 9, index)};
    EXPECT_EQ(parse_check(print(check)), check) << print(check);
    const PropertyCase nameless{{}, check.test_case};
    EXPECT_EQ(parse_check(print(nameless)), nameless) << print(nameless);
  }
  EXPECT_EQ(parse_check(print(PropertyCase{"first", {}})), (PropertyCase{"first", {}}));
  EXPECT_EQ(parse_check(print(PropertyCase{})), PropertyCase{});
}

TEST(Check, ALineMayNameItsSetting) {
  const Case drawn = draw_case("second", 9, 1);
  const PropertyCase check{"second", drawn, Setting{"sm_90+worst:7", ~std::uint64_t{0}}};
  EXPECT_TRUE(print(check).ends_with(" numerics=sm_90+worst:7 schedule=18446744073709551615"));
  EXPECT_EQ(parse_check(print(check)), check);
  const PropertyCase nameless{{}, drawn, Setting{"f32", 0}};
  EXPECT_EQ(parse_check(print(nameless)), nameless);
  EXPECT_EQ(parse_check("schedule=4 " + print(drawn)).setting, (Setting{"sm_80", 4}));
  EXPECT_EQ(parse_check(print(drawn) + " numerics=sm_90").setting, (Setting{"sm_90", 0}));
  const std::string message = message_of("first numerics=sm_90 nonsense=1");
  EXPECT_NE(message.find("column 22"), std::string::npos) << message;
  EXPECT_NE(message_of(print(drawn) + " numerics=sm_91").find("'sm_91'"), std::string::npos);
  EXPECT_NE(message_of(print(drawn) + " numerics=drawn"), "");
  EXPECT_NE(message_of(print(drawn) + " schedule=-1").find("schedule=-1"), std::string::npos);
  EXPECT_NE(message_of(print(drawn) + " schedule=1 schedule=2"), "");
}

TEST(Check, SuggestsThePropertyThatWasMeant) {
  const std::string message = message_of("secnod " + print(draw_case("second", 1, 1)));
  EXPECT_NE(message.find("did you mean 'second'?"), std::string::npos) << message;
  EXPECT_THROW(property_named("thrid"), Error);
}

TEST(Check, AnErrorNamesTheColumnOfTheWholeLine) {
  const std::string message = message_of("first nonsense=1");
  EXPECT_NE(message.find("column 7"), std::string::npos) << message;
  EXPECT_NE(message_of("first"), "");
  EXPECT_NE(message_of(""), "");
}

TEST(Check, SeesFaultsAndBits) {
  const Subject healthy = fake_subject({});
  const Property& property = property_named("first");
  Case a, b;
  b.seed = 1;
  const Observation seen_a = observe(healthy, property, a);
  EXPECT_EQ(seen_a.replies, 1U);
  EXPECT_EQ(seen_a.fault_kind, "");
  EXPECT_EQ(kind_of(seen_a), "holds");
  EXPECT_EQ(seen_a.o_digest, observe(healthy, property, a).o_digest);
  const Observation seen_b = observe(healthy, property, b);
  EXPECT_NE(seen_a.o_digest, seen_b.o_digest);
  EXPECT_EQ(seen_a.lse_digest, seen_b.lse_digest);

  const Subject broken =
      fake_subject({{}, [](const Problem&) { return std::string("memcheck"); }, {}});
  EXPECT_EQ(kind_of(observe(broken, property, a)), "faulted: memcheck");
}

// Whichever function a property calls, nothing that comes back is lost.
TEST(Check, EveryOperationIsWatched) {
  Reply reply;
  reply.counters.launches = 3;
  reply.kernels = {"some_kernel"};
  reply.k = Tensor(Format::f32, {1, 1, 1, 1});
  Subject subject;
  subject.offered.set();
  subject.call = [&reply](const Request&, Poison) { return reply; };
  using Ask = decltype(Property::check);
  const Ask asks[] = {[](const Subject& s, const Problem& p, const Values& v) {
                        s.call(Attend{Operation::prefill, p, v}, Poison::nan);
                        return Verdict{};
                      },
                      [](const Subject& s, const Problem& p, const Values& v) {
                        s.call(Attend{Operation::decode, p, v}, Poison::nan);
                        return Verdict{};
                      },
                      [](const Subject& s, const Problem& p, const Values&) {
                        s.call(Append{p, CacheUpdate{}}, Poison::nan);
                        return Verdict{};
                      },
                      [](const Subject& s, const Problem&, const Values&) {
                        s.call(Project{Projection{}}, Poison::nan);
                        return Verdict{};
                      },
                      [](const Subject& s, const Problem& p, const Values&) {
                        s.call(CopyPages{p, PageCopy{}}, Poison::nan);
                        return Verdict{};
                      }};
  const std::uint64_t nothing =
      observe(subject,
              Property{"none", "",
                       [](const Subject&, const Problem&, const Values&) { return Verdict{}; }},
              Case{})
          .o_digest;
  for (const Ask ask : asks) {
    reply.fault.reset();
    Observation seen = observe(subject, Property{"asks", "", ask}, Case{});
    EXPECT_EQ(seen.replies, 1);
    EXPECT_EQ(seen.counters.launches, 3);
    EXPECT_TRUE(seen.kernels.contains("some_kernel"));
    EXPECT_NE(seen.o_digest, nothing);
    reply.fault = Fault{"memcheck", "somewhere"};
    seen = observe(subject, Property{"asks", "", ask}, Case{});
    EXPECT_EQ(seen.fault_kind, "memcheck");
  }
}

TEST(Check, AWatchedSubjectStillSaysHowItRoundsOnEachProblem) {
  Subject subject = fake_subject({});
  subject.precision_for = [](Operation, const Problem& problem) {
    return PrecisionPath{.keys_per_rescale = problem.head_dim};
  };
  constexpr Property kAsks = {
      "asks", "", [](const Subject& watched, const Problem& problem, const Values&) {
        Verdict verdict;
        verdict.bound = static_cast<double>(
            precision_of(watched, Operation::prefill, problem).keys_per_rescale);
        return verdict;
      }};
  Case asked;
  for (const Index head_dim : {1, 8}) {
    asked.problem.head_dim = head_dim;
    EXPECT_EQ(check_case(subject, kAsks, asked).bound, static_cast<double>(head_dim));
  }
}

TEST(Check, ADigestDependsOnEveryBitTheFormatAndTheExtent) {
  Tensor tensor(Format::f32, {1, 1, 2, 3});
  const std::uint64_t zeros = digest_of(tensor);
  for (Index i = 0; i < tensor.count(); ++i) {
    for (unsigned bit = 0; bit < 32; ++bit) {
      tensor.set_bits(i, 1U << bit);
      EXPECT_NE(digest_of(tensor), zeros);
    }
    tensor.set_bits(i, 0);
  }
  EXPECT_EQ(digest_of(tensor), zeros);
  EXPECT_NE(digest_of(Tensor(Format::f32, {1, 1, 3, 2})), zeros);
  EXPECT_NE(digest_of(Tensor(Format::f16, {1, 1, 4, 3})),
            digest_of(Tensor(Format::bf16, {1, 1, 4, 3})));
}

}  // namespace
}  // namespace attest
