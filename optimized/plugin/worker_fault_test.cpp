// Each way a plugin can go wrong in a call becomes a fault of the right kind that says where, and
// the next call works again.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "optimized/plugin/fault_kinds.hpp"
#include "optimized/plugin/patterns.hpp"
#include "optimized/plugin/test_plugins/behaviours.h"
#include "optimized/plugin/testing/test_cases.hpp"
#include "optimized/plugin/worker.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

Problem problem_for(Behaviour behaviour) {
  Problem problem;
  problem.batch = 2;
  problem.num_heads_q = problem.num_heads_kv = 2;
  problem.seqlen_q = 3;
  problem.seqlen_kv = 4;
  problem.head_dim = problem.head_dim_v = 4;
  problem.spare_slots = 2;
  problem.seqlens_q = {3, 3};
  problem.seqlens_kv = {4, 2};
  problem.softmax_scale = static_cast<float>(behaviour);
  return problem;
}

WorkerOptions short_options() {
  WorkerOptions options = options_for("misbehaves");
  options.case_seconds = 10;
  options.memory_bytes = 256ULL << 20;
  return options;
}

Reply run(Subject& subject, const Problem& problem, Poison poison = Poison::nan) {
  return subject.call(Attend{Operation::prefill, problem, counting_values(problem)}, poison);
}

class WorkerFault : public testing::Test {
 protected:
  void expect(Behaviour behaviour, FaultKind kind, const std::string& part) {
    expect(problem_for(behaviour), kind, part);
  }
  void expect(const Problem& problem, FaultKind kind, const std::string& part) {
    const Reply reply = run(subject_, problem);
    ASSERT_TRUE(reply.fault) << part;
    EXPECT_EQ(reply.fault->kind, name_of(kind)) << reply.fault->what;
    EXPECT_NE(reply.fault->what.find(part), std::string::npos) << reply.fault->what;
    const Reply next = run(subject_, problem_for(BEHAVES_WELL));
    EXPECT_FALSE(next.fault) << next.fault->kind << ": " << next.fault->what;
  }

  Subject subject_ = open_plugin(short_options());
};

TEST_F(WorkerFault, Crashes) {
  expect(WRITES_NULL, FaultKind::crashed, "SIGSEGV");
  expect(WRITES_NULL, FaultKind::crashed, "writing address 0x0");
  expect(DIVIDES_BY_ZERO, FaultKind::crashed, "SIGFPE");
  expect(ABORTS, FaultKind::crashed, "SIGABRT");
  expect(ABORTS, FaultKind::crashed, "the last words");
  expect(OVERFLOWS_STACK, FaultKind::crashed, "stack overflowed");
  expect(EXITS, FaultKind::exited, "exit(3)");
  expect(TALKS_TO_CONTROL, FaultKind::crashed, "control socket");
}

TEST_F(WorkerFault, Exceptions) {
  Subject subject = open_plugin(options_for("throws"));
  EXPECT_EQ(subject.description.name, "throws");  // it names itself not, so its file does
  Problem problem;
  const Reply error = run(subject, problem);
  ASSERT_TRUE(error.fault);
  EXPECT_EQ(error.fault->kind, "crashed");
  EXPECT_NE(error.fault->what.find("the words of the exception"), std::string::npos);
  problem.causal = true;
  const Reply memory = run(subject, problem);
  ASSERT_TRUE(memory.fault);
  EXPECT_EQ(memory.fault->kind, "memory");
}

TEST_F(WorkerFault, HangEndsWithTheTimeLimit) {
  WorkerOptions options = short_options();
  options.case_seconds = 0.5;
  Subject subject = open_plugin(options);
  const auto begin = std::chrono::steady_clock::now();
  const Reply reply = run(subject, problem_for(HANGS));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(500));
  ASSERT_TRUE(reply.fault);
  EXPECT_EQ(reply.fault->kind, "hung");
  EXPECT_NE(reply.fault->what.find("500 ms"), std::string::npos) << reply.fault->what;
  EXPECT_FALSE(run(subject, problem_for(BEHAVES_WELL)).fault);
}

/// What the call is refused with, by an Error.
std::string refusal_of(Subject& subject, const Problem& problem) {
  try {
    const Reply reply = run(subject, problem);
    return reply.fault ? "a fault: " + reply.fault->kind : "no fault";
  } catch (const Error& error) {
    return error.what();
  }
}

// Slow is not wrong: whether it would have ended, no clock can say.
TEST_F(WorkerFault, AtWorkToTheEndOfItsTimeIsNoVerdict) {
  WorkerOptions options = short_options();
  options.case_seconds = 1;
  Subject subject = open_plugin(options);
  const std::string refused = refusal_of(subject, problem_for(SPINS));
  EXPECT_NE(refused.find("1000 ms"), std::string::npos) << refused;
  EXPECT_NE(refused.find("--case-seconds"), std::string::npos) << refused;
  EXPECT_FALSE(run(subject, problem_for(BEHAVES_WELL)).fault);
}

#if !defined(__SANITIZE_ADDRESS__)  // under which there is no limit
TEST_F(WorkerFault, MemoryLimit) {
  expect(WRITES_TO_REFUSED, FaultKind::memory, "memory limit 256 MiB");
  expect(EXITS_WHEN_REFUSED, FaultKind::memory, "memory limit 256 MiB");
  expect(RETURNS_WHEN_REFUSED, FaultKind::memory, "returned 12");
  Problem large = problem_for(BEHAVES_WELL);
  large.seqlen_kv = 1'000'000;  // k and v: 64 MB each, and as much again for their images
  large.seqlens_kv = {};
  expect(large, FaultKind::memory, "");
}
#endif

TEST_F(WorkerFault, ErrorCodes) {
  expect(RETURNS_ERROR, FaultKind::refused, "returned 7: the sentence of last_error");
  expect(ASKS_FOR_NEGATIVE_SCRATCH, FaultKind::refused, "-5");
}

TEST_F(WorkerFault, OutOfBounds) {
  expect(READS_BEHIND_K, FaultKind::guard, "read a byte 1 behind the last of k");
  expect(WRITES_BEHIND_V, FaultKind::guard, "wrote a byte 1 behind the last of v");
  expect(WRITES_BEFORE_Q, FaultKind::guard, "before the first of q");
  expect(WRITES_FAR_BEFORE_O, FaultKind::guard, "wrote a byte 20000 before the first of o");
  expect(WRITES_BEHIND_SCRATCH, FaultKind::guard, "a byte 1 behind the last of scratch");
}

TEST_F(WorkerFault, WrittenWhereNothingMayBeWritten) {
  expect(CHANGES_Q, FaultKind::inputs_changed, "q[0,0,0,1]");
  expect(CHANGES_LENGTHS, FaultKind::inputs_changed, "seqlens_kv[0]");
  expect(CHANGES_SPARE_SLOT, FaultKind::guard, "k[0,0,4,0]");
  Problem pages = problem_for(CHANGES_LAST_BLOCK);  // a page that no table names
  pages.page_size = 2;
  expect(pages, FaultKind::guard, "k[6,0,0,0]");
  Problem problem = problem_for(FILLS_ROW_GAP);
  problem.layout = Layout::bthd;
  expect(problem, FaultKind::guard, "gap between two rows of o");
  problem = problem_for(WRITES_BEHIND_QUERIES);
  problem.seqlens_q = {3, 1};
  expect(problem, FaultKind::guard, "o[1,0,1,0]");
}

// An append may write what an entry has room for: no page of nobody's, no slot behind the capacity.
TEST_F(WorkerFault, AppendedWhereNobodyHasRoom) {
  Problem p = problem_for(BEHAVES_WELL);
  p.page_size = 4;
  CacheUpdate update;
  update.k = update.v = counting(Format::f32, {2, 2, 6, 4}, 1);
  update.new_k = update.new_v = counting(Format::f32, {2, 2, 1, 4}, 1);
  update.cache_seqlens = update.new_seqlens = {1, 1};
  EXPECT_FALSE(subject_.call(Append{p, update}, Poison::nan).fault);
  p.softmax_scale = CHANGES_LAST_BLOCK;
  const Reply page = subject_.call(Append{p, update}, Poison::nan);
  ASSERT_TRUE(page.fault);
  EXPECT_EQ(page.fault->kind, "guard");
  EXPECT_NE(page.fault->what.find("k[4,0,0,0]"), std::string::npos) << page.fault->what;
  p.softmax_scale = CHANGES_SPARE_SLOT;
  const Reply slot = subject_.call(Append{p, update}, Poison::nan);
  ASSERT_TRUE(slot.fault);
  EXPECT_EQ(slot.fault->kind, "guard");
  EXPECT_NE(slot.fault->what.find("v[1,0,3,0]"), std::string::npos) << slot.fault->what;
}

TEST_F(WorkerFault, Unwritten) {
  expect(FORGETS_LAST_O, FaultKind::unwritten, "o[1,1,2,3]");
  expect(FORGETS_LSE, FaultKind::unwritten, "lse[0,0,0]");
}

TEST_F(WorkerFault, FloodOfOutputIsNoFault) {
  const Reply reply = run(subject_, problem_for(FLOODS_STDOUT));
  EXPECT_FALSE(reply.fault) << reply.fault->what;
}

TEST_F(WorkerFault, CrashInDeclinesIsReportedByTheNextCall) {
  EXPECT_EQ(subject_.declines(Operation::prefill, problem_for(CRASHES_IN_DECLINES)), std::nullopt);
  const Reply reply = run(subject_, problem_for(BEHAVES_WELL));
  ASSERT_TRUE(reply.fault);
  EXPECT_EQ(reply.fault->kind, "crashed");
  EXPECT_NE(reply.fault->what.find("declines()"), std::string::npos) << reply.fault->what;
  EXPECT_FALSE(run(subject_, problem_for(BEHAVES_WELL)).fault);
}

TEST_F(WorkerFault, UnreachableMemoryHoldsThePoison) {
  for (const Poison poison : {Poison::nan, Poison::huge, Poison::small}) {
    const Reply slot = run(subject_, problem_for(COPIES_SPARE_SLOT), poison);
    const Reply scratch = run(subject_, problem_for(COPIES_SCRATCH), poison);
    ASSERT_FALSE(slot.fault) << slot.fault->what;
    ASSERT_FALSE(scratch.fault) << scratch.fault->what;
    for (Index n = 0; n < 4; ++n) {
      EXPECT_EQ(slot.o.bits(n), poison_pattern(Element::f32, poison));
    }
    EXPECT_EQ(scratch.lse.bits(0), poison_pattern(Element::f32, poison));
  }
}

pid_t process_of(Subject& subject) {
  const Reply reply = run(subject, problem_for(TELLS_PROCESS));
  return reply.fault ? -1 : static_cast<pid_t>(reply.o.at(0));
}

TEST_F(WorkerFault, KilledFromOutsideBetweenCallsIsNobodysFault) {
  const pid_t first = process_of(subject_);
  ASSERT_GT(first, 0);
  EXPECT_EQ(process_of(subject_), first);
  ASSERT_EQ(kill(first, SIGKILL), 0);
  const pid_t second = process_of(subject_);
  EXPECT_GT(second, 0);
  EXPECT_NE(second, first);
}

bool is_running(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/stat");
  std::string id, name, state;
  status >> id >> name >> state;
  return !state.empty() && state != "Z";  // nobody may have waited for it yet
}

bool ends_soon(pid_t process) {
  for (int wait = 0; wait < 500 && is_running(process); ++wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return !is_running(process);
}

TEST_F(WorkerFault, WhatAPluginStartsEndsWithItsWorker) {
  for (const Behaviour behaviour : {FORKS, FORKS_DETACHED}) {
    pid_t child = 0;
    {
      Subject subject = open_plugin(short_options());
      const Reply reply = run(subject, problem_for(behaviour));
      ASSERT_FALSE(reply.fault) << reply.fault->what;
      child = static_cast<pid_t>(reply.o.at(0));
      ASSERT_GT(child, 0);
      EXPECT_TRUE(is_running(child));
    }
    EXPECT_TRUE(ends_soon(child)) << behaviour;
  }
}

// A child holds what it inherited, the worker's socket too: that the worker is dead shows all the
// same, and at once.
TEST_F(WorkerFault, AChildHidesNoDeath) {
  const auto begin = std::chrono::steady_clock::now();
  expect(FORKS_AND_ABORTS, FaultKind::crashed, "SIGABRT");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

// In both states a worker can be in when attest is killed: waiting, and in the middle of a call.
TEST_F(WorkerFault, KilledParentLeavesNoWorkerBehind) {
  for (const Behaviour last : {BEHAVES_WELL, HANGS}) {
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
      Subject subject = open_plugin(short_options());
      const pid_t worker = process_of(subject);
      const auto forked = static_cast<pid_t>(run(subject, problem_for(FORKS_DETACHED)).o.at(0));
      if (write(pipes[1], &worker, sizeof(worker)) != sizeof(worker)) _exit(1);
      if (write(pipes[1], &forked, sizeof(forked)) != sizeof(forked)) _exit(1);
      run(subject, problem_for(last));
      for (;;) pause();
    }
    pid_t worker = 0, forked = 0;
    ASSERT_EQ(read(pipes[0], &worker, sizeof(worker)), static_cast<ssize_t>(sizeof(worker)));
    ASSERT_EQ(read(pipes[0], &forked, sizeof(forked)), static_cast<ssize_t>(sizeof(forked)));
    close(pipes[0]);
    close(pipes[1]);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // until the last call has begun
    ASSERT_TRUE(is_running(worker));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(ends_soon(worker));
    EXPECT_TRUE(ends_soon(forked));
  }
}

// The thread that started a worker may end before the worker is used.
TEST_F(WorkerFault, WorkerOutlivesTheThreadThatStartedIt) {
  Subject subject;
  std::thread([&] { subject = open_plugin(short_options()); }).join();
  const pid_t first = process_of(subject);
  std::thread([&] { EXPECT_EQ(process_of(subject), first); }).join();
  EXPECT_EQ(process_of(subject), first);
}

}  // namespace
}  // namespace attest
