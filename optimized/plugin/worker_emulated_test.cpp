// Real CUDA plugins, built by nvcc, on the emulator. Only numbers that are exact in any order of
// operations are compared: one visible key gives o = v, appends copy, small integers add exactly.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "optimized/plugin/fault_kinds.hpp"
#include "optimized/plugin/test_plugins/behaviours.h"
#include "optimized/plugin/testing/test_cases.hpp"
#include "optimized/plugin/worker.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

WorkerOptions kernels() {
  WorkerOptions options;
  options.plugin = program_folder() / "plugins" / "attest_kernels.so";
  options.device = DeviceChoice::emulated;
  return options;
}

WorkerOptions strays() {
  WorkerOptions options = options_for("strays");
  options.device = DeviceChoice::emulated;
  return options;
}

Problem one_key() {
  Problem p;
  p.batch = 2;
  p.num_heads_q = 4;
  p.num_heads_kv = 2;
  p.seqlen_q = 3;
  p.head_dim = 8;
  p.head_dim_v = 5;
  p.softmax_scale = 0.5F;
  p.spare_slots = 3;
  return p;
}

void expect_value_of_the_key(const Reply& reply, const Problem& p, const Values& values) {
  ASSERT_FALSE(reply.fault) << reply.fault->kind << ": " << reply.fault->what;
  EXPECT_GT(reply.counters.launches, 0);
  EXPECT_GT(reply.counters.warp_instructions, 0);
  for (Index b = 0; b < p.batch; ++b) {
    for (Index h = 0; h < p.num_heads_q; ++h) {
      for (Index i = 0; i < p.seqlen_q; ++i) {
        const Index g = h / (p.num_heads_q / p.num_heads_kv);
        double logit = 0;
        for (Index c = 0; c < p.head_dim; ++c) {
          logit += values.q.at(b, h, i, c) * values.k.at(b, g, 0, c) * p.softmax_scale;
        }
        EXPECT_EQ(reply.lse.at(b, h, i, 0), logit);
        for (Index c = 0; c < p.head_dim_v; ++c) {
          EXPECT_EQ(reply.o.at(b, h, i, c), values.v.at(b, g, 0, c));
        }
      }
    }
  }
}

TEST(WorkerEmulated, OwnKernelsSayWhereTheyRun) {
  const Subject subject = open_plugin(kernels());
  EXPECT_EQ(subject.description.numerics, "emulated: sm_80");
  EXPECT_TRUE(subject.offered.all());
}

TEST(WorkerEmulated, AttendsToTheOnlyKey) {
  Subject subject = open_plugin(kernels());
  for (const Format format : {Format::f32, Format::f16, Format::bf16}) {
    for (const Layout layout : {Layout::bhtd, Layout::bthd}) {
      for (const Poison poison : {Poison::nan, Poison::huge, Poison::small}) {
        Problem p = one_key();
        p.input = p.output = format;
        p.layout = layout;
        const Values values = counting_values(p);
        expect_value_of_the_key(subject.call(Attend{Operation::prefill, p, values}, poison), p,
                                values);
        p.num_splits = 2;
        expect_value_of_the_key(subject.call(Attend{Operation::decode, p, values}, poison), p,
                                values);
      }
    }
  }
}

TEST(WorkerEmulated, EachCheckRunsUnderTheSettingItIsGiven) {
  Subject subject = open_plugin(kernels());
  Problem p;
  p.seqlen_q = p.seqlen_kv = 9;
  p.head_dim = p.head_dim_v = 8;
  p.softmax_scale = 0x1p-13F;  // weights of one size
  const Values values = counting_values(p);
  const auto o_under = [&](const Setting& setting) {
    subject.begin_under(setting);
    return subject.call(Attend{Operation::prefill, p, values}, Poison::nan).o;
  };
  const Tensor plain = subject.call(Attend{Operation::prefill, p, values}, Poison::nan).o;
  const Tensor worst = o_under({"sm_80+worst:1", 0});
  EXPECT_NE(worst, plain) << "exponentials that err change some bit";
  EXPECT_EQ(o_under({"sm_80", 5}), plain);
  EXPECT_EQ(o_under({"sm_80+worst:1", 5}), worst);
  EXPECT_THROW(subject.begin_under({"sm_81", 0}), Error);
}

TEST(WorkerEmulated, Appends) {
  Subject subject = open_plugin(kernels());
  CacheUpdate update;
  update.k = counting(Format::f16, {1, 2, 4, 8}, 0);
  update.v = counting(Format::f16, {1, 2, 4, 5}, 1);
  update.new_k = counting(Format::f16, {1, 2, 1, 8}, 100);
  update.new_v = counting(Format::f16, {1, 2, 1, 5}, 101);
  update.cache_seqlens = {2};
  update.new_seqlens = {1};
  Problem p;
  p.input = Format::f16;
  const Reply reply = subject.call(Append{p, update}, Poison::nan);
  ASSERT_FALSE(reply.fault) << reply.fault->kind << ": " << reply.fault->what;
  for (Index h = 0; h < 2; ++h) {
    for (Index slot = 0; slot < 4; ++slot) {
      for (Index c = 0; c < 5; ++c) {
        EXPECT_EQ(reply.k.at(0, h, slot, c),
                  slot == 2 ? update.new_k.at(0, h, 0, c) : update.k.at(0, h, slot, c));
        EXPECT_EQ(reply.v.at(0, h, slot, c),
                  slot == 2 ? update.new_v.at(0, h, 0, c) : update.v.at(0, h, slot, c));
      }
    }
  }
}

TEST(WorkerEmulated, Projects) {
  Subject subject = open_plugin(kernels());
  const Projection projection{counting(Format::f32, {2, 1, 3, 4}, 0),
                              counting(Format::f32, {1, 1, 4, 5}, 1), Format::f32};
  const Reply reply = subject.call(Project{projection}, Poison::nan);
  ASSERT_FALSE(reply.fault) << reply.fault->kind << ": " << reply.fault->what;
  for (Index b = 0; b < 2; ++b) {
    for (Index row = 0; row < 3; ++row) {
      for (Index column = 0; column < 5; ++column) {
        double sum = 0;
        for (Index inner = 0; inner < 4; ++inner) {
          sum += projection.x.at(b, 0, row, inner) * projection.w.at(0, 0, inner, column);
        }
        EXPECT_EQ(reply.y.at(b, 0, row, column), sum);
      }
    }
  }
}

class WorkerStrays : public testing::Test {
 protected:
  Reply run(Behaviour behaviour) {
    Problem p;
    p.seqlen_kv = 3;
    p.head_dim = p.head_dim_v = 4;
    p.softmax_scale = static_cast<float>(behaviour);
    return subject_.call(Attend{Operation::prefill, p, counting_values(p)}, Poison::nan);
  }
  void expect(Behaviour behaviour, const std::string& kind, const std::string& part) {
    const Reply reply = run(behaviour);
    ASSERT_TRUE(reply.fault) << part;
    EXPECT_EQ(reply.fault->kind, kind) << reply.fault->what;
    EXPECT_NE(reply.fault->what.find(part), std::string::npos) << reply.fault->what;
    const Reply next = run(BEHAVES_WELL);
    EXPECT_FALSE(next.fault) << next.fault->kind << ": " << next.fault->what;
  }
  static WorkerOptions short_options() {
    WorkerOptions options = strays();
    options.case_seconds = 5;
    return options;
  }
  Subject subject_ = open_plugin(short_options());
};

TEST_F(WorkerStrays, OneElementOutsideIsAFindingOfMemcheck) {
  for (const Behaviour behaviour :
       {READS_BEHIND_K, WRITES_BEHIND_V, WRITES_BEFORE_Q, WRITES_NULL}) {
    expect(behaviour, "memcheck", "touch");
    expect(behaviour, "memcheck", "37");  // the thread
    expect(behaviour, "memcheck", "strays.cu:");
  }
  expect(READS_BEHIND_K, "memcheck", "(byte 1 behind the last of k)");
  expect(WRITES_BEHIND_V, "memcheck", "(byte 1 behind the last of v)");
  expect(WRITES_BEFORE_Q, "memcheck", "(byte 4 before the first of q)");
}

TEST_F(WorkerStrays, AWorkerThatIsStartedAgainKeepsTheSetting) {
  subject_.begin_under({"sm_90+worst:3", 5});
  for (int times = 0; times < 2; ++times) {
    expect(HANGS, "deadlock", "under numerics sm_90+worst:3, schedule 5, checks memcheck");
    expect(READS_BEHIND_K, "memcheck", "under numerics sm_90+worst:3, schedule 5");
  }
}

// The stub around a kernel asks for its handle once, at its first launch, and here during a fault.
TEST_F(WorkerStrays, AKernelFirstLaunchedDuringAFaultIsSoundAfterIt) {
  expect(FAULTS_THEN_SECOND, "memcheck", "strays.cu:");
  const Reply next = run(LAUNCHES_SECOND);
  EXPECT_FALSE(next.fault) << next.fault->kind << ": " << next.fault->what;
}

TEST_F(WorkerStrays, TheKernelsOfACallAreNamedByFirstLaunch) {
  using Names = std::vector<std::string>;
  const std::string in = "(anonymous namespace)::";
  EXPECT_EQ(run(LAUNCHES_SECOND).kernels, (Names{in + "write_zeros", in + "write_second<2>"}));
  EXPECT_EQ(run(BEHAVES_WELL).kernels, Names{in + "write_zeros"});
  EXPECT_EQ(run(READS_BEHIND_K).kernels, (Names{in + "write_zeros", in + "touch"}));
}

TEST_F(WorkerStrays, WhatNoCheckerSees) {
  expect(CHANGES_Q, "inputs_changed", "q[0,0,0,1]");
  expect(RETURNS_ERROR, "refused", "returned 7");
  expect(DIVIDES_BY_ZERO, "cuda", "cudaGetLastError");
}

TEST_F(WorkerStrays, AFaultOfTheEmulatorIsNotThePluginsAndAsksForAReport) {
  for (int times = 0; times < 2; ++times) {
    try {
      const Reply reply = run(ABORTS);
      ADD_FAILURE() << (reply.fault ? reply.fault->what : "no fault");
    } catch (const Error& error) {
      const std::string what = error.what();
      for (const char* part : {"this is a fault of attest itself: SIGABRT while it executed the "
                               "kernel",
                               "count_up", "please report it"}) {
        EXPECT_NE(what.find(part), std::string::npos) << what;
      }
    }
    EXPECT_FALSE(run(BEHAVES_WELL).fault);
  }
  // What host code hands over to be read is the plugin's affair, though the emulator reads it.
  expect(COPIES_FROM_NOWHERE, "crashed", "SIGSEGV");
}

// Whatever else the machine does: by what was executed, if it only gets the time for that.
TEST_F(WorkerStrays, AnEndlessKernelIsFoundByWhatItExecutes) {
  WorkerOptions patient = strays();
  patient.case_seconds = 600;
  subject_ = open_plugin(patient);
  expect(SPINS, "limit", "strays.cu:");
}

TEST_F(WorkerStrays, AKernelStillAtWorkIsNoVerdict) {
  WorkerOptions impatient = strays();
  impatient.case_seconds = 0.4;
  subject_ = open_plugin(impatient);
  try {
    const Reply reply = run(SPINS);
    ADD_FAILURE() << (reply.fault ? reply.fault->kind : "no fault");
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("--case-seconds"), std::string::npos) << text;
  }
  EXPECT_FALSE(run(BEHAVES_WELL).fault);
}

TEST_F(WorkerStrays, EndlessKernelIsStopped) {
  const Reply reply = run(HANGS);
  ASSERT_TRUE(reply.fault);
  // By the clock, by the count of instructions, or because nothing that it waits for can change.
  const std::string& kind = reply.fault->kind;
  EXPECT_TRUE(kind == "hung" || kind == "limit" || kind == "deadlock") << kind;
  EXPECT_FALSE(run(BEHAVES_WELL).fault);
}

TEST(WorkerCuda, WithoutADriverSaysSo) {
  WorkerOptions options = kernels();
  options.device = DeviceChoice::cuda;
  try {
    const Subject subject = open_plugin(options);
    EXPECT_TRUE(subject.description.numerics.starts_with("cuda: "));  // there is a GPU
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("CUDA driver"), std::string::npos) << text;
    EXPECT_NE(text.find("--device emulated"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace attest
