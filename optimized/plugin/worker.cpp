// The client side: a Subject whose functions send their arguments to a worker process.
#include "optimized/plugin/worker.hpp"

#include <bitset>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "optimized/plugin/abi.hpp"
#include "optimized/plugin/fault_kinds.hpp"
#include "optimized/plugin/instruction_limit.hpp"
#include "optimized/plugin/request.hpp"
#include "optimized/plugin/worker_process.hpp"
#include "reference/one_line.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

template <std::size_t kBytes>
std::string text_of(const char (&field)[kBytes]) {
  return {field, strnlen(field, kBytes)};
}

/// What the plugin wrote, or quotes from it. Here it enters: behind this line no terminal obeys it
/// and no report is broken by it.
template <std::size_t kBytes>
std::string said(const char (&field)[kBytes]) {
  return one_line(text_of(field));
}

/// One per line.
std::vector<std::string> names_in(const std::string& lines) {
  std::vector<std::string> names;
  for (std::size_t at = 0, end = 0; (end = lines.find('\n', at)) != lines.npos; at = end + 1) {
    names.push_back(one_line(lines.substr(at, end - at)));
  }
  return names;
}

class Client {
 public:
  explicit Client(const WorkerOptions& options)
      : options_(options), order_of_check_(options.emulator.schedule) {
    start();
    const auto& greeting = worker_->reply().at<const ReplyHeader>(0);
    offers_ = greeting.offers;
    emulated_ = greeting.counts != 0;
    description_.name = said(greeting.name);
    if (description_.name.empty()) description_.name = options.plugin.stem().string();
    description_.numerics = said(greeting.numerics);
    description_.precision = precision_path(greeting.precision);
    description_.counts = emulated_ && (options.counters || options.emulator.counters);
    description_.deterministic = (greeting.promises & ATTEST_DETERMINISTIC) != 0;
    description_.batch_invariant = (greeting.promises & ATTEST_BATCH_INVARIANT) != 0;
  }

  const Description& description() const { return description_; }
  bool emulated() const { return emulated_; }
  std::bitset<kOperationCount> offered() const { return offers_; }
  bool offers(Operation operation) const {
    return offered().test(static_cast<std::size_t>(operation));
  }

  /// A worker that is started later gets the options as it starts, one that lives with its next
  /// call.
  void begin_under(const Setting& setting) {
    std::string problem;
    const auto numerics = emulator::parse_numerics(setting.numerics, problem);
    if (!numerics) throw Error(problem);
    options_.emulator.numerics = *numerics;
    order_of_check_ = setting.schedule;
    reorder(0);
  }

  void reorder(std::uint64_t turn) {
    constexpr std::uint64_t kFarApart = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio
    options_.emulator.schedule = order_of_check_ ^ (turn * kFarApart);
    untold_ = print(emulator_options(options_));
  }

  std::optional<std::string> declines(Operation operation, const Problem& problem) {
    if (!offers(operation)) return "the plugin offers no " + std::string(name_of(operation));
    if (auto why = inexpressible(problem)) return why;
    auto& answer = answers_[static_cast<std::size_t>(operation)];
    if (answer && answer->problem == problem) return answer->declined;
    RequestHeader request{};
    request.operation = static_cast<std::uint32_t>(operation);
    request.problem = abi_problem(problem);
    pending_fault_ = revive();
    if (!pending_fault_) {
      std::memcpy(worker_->request().data(), &request, sizeof(request));
      pending_fault_ = ask(MessageKind::declines);
    }
    if (pending_fault_) {
      pending_fault_->what = "declines(): " + pending_fault_->what;
      worker_.reset();
      return std::nullopt;
    }
    const auto& reply = worker_->reply().at<const ReplyHeader>(0);
    if (reply.faulted != 0) {
      pending_fault_ = Fault{said(reply.kind), said(reply.text)};
      return std::nullopt;
    }
    std::optional<std::string> why;
    if (reply.declined != 0) why = said(reply.text);
    answer.emplace(problem, why, precision_path(reply.precision));
    return why;
  }

  /// What was said when it was asked whether it declines; nothing new when it died of the question.
  PrecisionPath precision_for(Operation operation, const Problem& problem) {
    declines(operation, problem);
    const auto& answer = answers_[static_cast<std::size_t>(operation)];
    return answer && answer->problem == problem ? answer->precision : description_.precision;
  }

  /// Of the worker's life, which ends with it: the next one counts anew.
  emulator::Profile take_profile() {
    if (!description_.counts || revive() || ask(MessageKind::profile)) return {};
    const std::string text = text_of(worker_->reply().at<const ReplyHeader>(0).text);
    worker_.reset();
    std::string problem;
    const auto profile = emulator::parse_profile(text, problem);
    if (!profile)
      throw Error("the worker's " + problem + ": it may have launched too many kernels");
    return *profile;
  }

  Reply call(const RequestPlan& plan) {
    std::optional<Fault> fault = std::exchange(pending_fault_, std::nullopt);
    if (!fault) fault = revive();
    if (!fault) fault = send(plan);
    if (fault && worker_ && worker_->killed_from_outside()) {
      start();  // which says nothing of the plugin, unless it happens again
      fault = send(plan);
    }
    Reply reply;
    if (fault) {
      worker_.reset();
    } else {
      const auto& header = worker_->reply().at<const ReplyHeader>(0);
      if (header.faulted != 0) {
        fault = Fault{said(header.kind), said(header.text)};
      } else {
        reply = plan.read(worker_->reply().data());
      }
      reply.counters = header.counters;
      reply.kernels = names_in(text_of(header.kernels));
      // A plugin may keep what it was refused during a fault (handles, buffers, sticky errors), and
      // what it wrote astray may be its own: nothing that a later case shows may come of that.
      if (header.faulted != 0) worker_.reset();
    }
    if (fault) {
      fault->what = std::string(name_of(plan.operation())) + ": " + fault->what;
      reply.fault = std::move(fault);
    }
    return reply;
  }

 private:
  void start() { worker_ = std::make_unique<WorkerProcess>(options_); }

  std::optional<Fault> ask(MessageKind kind) {
    try {
      return worker_->ask(kind);
    } catch (const Error&) {  // the process is gone
      worker_.reset();
      throw;
    }
  }

  std::optional<Fault> send(const RequestPlan& plan) {
    worker_->request().grow(plan.request_bytes());
    worker_->reply().grow(plan.reply_bytes());
    plan.write(worker_->request().data());
    put_text(worker_->request().at<RequestHeader>(0).emulator, std::exchange(untold_, {}));
    auto& request = worker_->request().at<RequestHeader>(0);
    request.instruction_limit = instruction_limit(request);
    return ask(MessageKind::call);
  }

  /// A living worker, started if need be; a fault when the last one died by itself after a call.
  std::optional<Fault> revive() {
    if (worker_) {
      const std::optional<Fault> death = worker_->died_idle();
      if (!death) return std::nullopt;
      worker_.reset();
      if (!death->kind.empty()) return death;
    }
    start();
    return std::nullopt;
  }

  WorkerOptions options_;
  std::unique_ptr<WorkerProcess> worker_;
  Description description_;
  std::uint32_t offers_ = 0;
  bool emulated_ = false;
  std::uint64_t order_of_check_;
  std::string untold_;  // options for the emulator that go with the next call
  // A property asks, then calls, then may ask the same again: the last answer per operation.
  struct Answer {
    Problem problem;
    std::optional<std::string> declined;
    PrecisionPath precision;
  };
  std::optional<Answer> answers_[kOperationCount];
  // A plugin that dies in declines() has not declined: the next call reports it.
  std::optional<Fault> pending_fault_;
};

Subject subject_of(const std::shared_ptr<Client>& client) {
  Subject subject;
  subject.description = client->description();
  subject.declines = [client](Operation operation, const Problem& problem) {
    return client->declines(operation, problem);
  };
  subject.precision_for = [client](Operation operation, const Problem& problem) {
    return client->precision_for(operation, problem);
  };
  subject.offered = client->offered();
  subject.call = [client](const Request& request, Poison poison) {
    return client->call(RequestPlan(request, poison));
  };
  if (client->emulated()) {
    subject.begin_under = [client](const Setting& setting) { client->begin_under(setting); };
    subject.reorder = [client](std::uint64_t turn) { client->reorder(turn); };
  }
  return subject;
}

}  // namespace

Subject open_plugin(const WorkerOptions& options) {
  return subject_of(std::make_shared<Client>(options));
}

ProfiledPlugin open_profiled_plugin(const WorkerOptions& options) {
  const auto client = std::make_shared<Client>(options);
  return {subject_of(client), [client] { return client->take_profile(); }};
}

}  // namespace attest
