// Threads take numbered cases and hand in what they saw; results are counted strictly in the order
// of the numbers, so that a Run does not depend on who was quicker. How a verdict is counted is
// tally.hpp's business, how a finding becomes small is shrink.hpp's.
#include "fuzz/campaign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "fuzz/confirmation.hpp"
#include "fuzz/coverage.hpp"
#include "fuzz/drawing.hpp"
#include "fuzz/plan.hpp"
#include "fuzz/setting.hpp"
#include "fuzz/tally.hpp"
#include "fuzz/ticket.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kProgressEvery = std::chrono::milliseconds(100);

// A drawn case that is declined is drawn again, so that all subjects are judged on as many cases.
// As often as it takes to find one of 20 in 96 of 100 tries: 1 - 0.95^64.
constexpr std::uint64_t kDrawsMost = 64;
// A property whose first cases were all declined, each with all its draws, is not served: it is
// closed, and its share of the budget goes to the others. A subject that accepts one in 20 is
// mistaken for one that accepts none once in 20,000 runs.
constexpr std::uint64_t kDeclinedFirst = 3;
constexpr std::uint64_t kOffered = kDeclinedFirst + 1;
// What failed and did not fail again closes a property too, but later: a flaw that comes and goes
// may yet show twice in a row.
constexpr std::uint64_t kUnreproducedMost = 8;

class Campaign {
 public:
  Campaign(const std::function<Subject()>& make_subject, const CampaignOptions& options,
           const CampaignEvents& events, const std::atomic<bool>& stop)
      : make_subject_(make_subject),
        options_(options),
        events_(events),
        stop_(stop),
        properties_(properties_named(options.properties)),
        plan_(properties_, options.first_index) {
    for (const PropertyCase& check : options.first) {
      const auto at = std::ranges::find(properties_, &property_named(check.property));
      if (at == properties_.end()) continue;
      Ticket& ticket = first_.emplace_back();
      ticket.number = first_.size() - 1;
      ticket.property = static_cast<std::size_t>(at - properties_.begin());
      ticket.test_case = check.test_case;
      ticket.setting = check.setting;
    }
    closed_.resize(properties_.size());
    declined_first_.resize(properties_.size());
    open_tallies(run_, properties_);
  }

  Run run(const std::vector<Subject>& subjects) {
    served_ = probe(subjects.front(), bringing(options_.where));
    coverage_.emplace(served_);
    {
      std::vector<std::jthread> threads;
      for (const Subject& subject : subjects) threads.emplace_back([&] { work(subject); });
    }
    run_.version = version();
    note_offered(run_, subjects.front());
    run_.subject = subjects.front().description.name;
    run_.numerics = subjects.front().description.numerics;
    run_.emulation = options_.emulation;
    if (subjects.front().begin_under && options_.emulation.numerics == kDrawn)
      run_.numerics = fmt::format("emulated: {}", kDrawn);
    run_.precision = subjects.front().description.precision;
    run_.seed = options_.seed;
    run_.covered = coverage_->tallies();
    run_.where = options_.where.text;
    run_.seconds = elapsed();
    run_.interrupted = stop_;
    run_.error = error_;
    run_.next_index = next_index();
    return std::move(run_);
  }

 private:
  /// Behind the highest number that is part of the run, but never behind one that was lost.
  std::uint64_t next_index() const {
    const std::uint64_t numbers = std::min(done_, lost_);
    return options_.first_index + numbers - std::min<std::uint64_t>(numbers, first_.size());
  }

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  bool ended() const {
    return stop_ || !error_.empty() ||
           (options_.budget_seconds && elapsed() >= *options_.budget_seconds) ||
           std::ranges::find(closed_, false) == closed_.end();
  }

  void work(const Subject& subject) {
    Ticket ticket;
    while (take(ticket)) {
      try {
        check(subject, ticket);
      } catch (const std::exception& error) {
        ticket.state = Ticket::State::lost;
        fail(error.what(), ticket);
      }
      hand_in(std::exchange(ticket, {}));
    }
  }

  void fail(std::string_view what, const Ticket& ticket) {
    const std::lock_guard lock(mutex_);
    if (!error_.empty()) return;
    error_ = fmt::format("{} (while checking '{}')", what, print(check_of(ticket)));
  }

  /// The next number whose property is still open. Waits while the rest of the budget is in the
  /// hands of others, because some of theirs may not count.
  bool take(Ticket& ticket) {
    std::unique_lock lock(mutex_);
    while (!ended()) {
      if (next_ < first_.size()) {
        ticket = first_[next_++];
        return true;
      }
      if (options_.budget_cases && drawn_counted_ + in_hand_ >= *options_.budget_cases) {
        if (in_hand_ == 0) return false;
        changed_.wait_for(lock, kProgressEvery);
        continue;
      }
      const std::uint64_t index = options_.first_index + (next_ - first_.size());
      if (!plan_.knows(index)) {
        changed_.wait_for(lock, kProgressEvery);
        continue;
      }
      ticket.number = next_++;
      ticket.drawn = true;
      ticket.property = static_cast<std::size_t>(index % properties_.size());
      ticket.campaign_index = index;
      ticket.draw_index = plan_.draw_index(index);
      ticket.aim = plan_.aim(index);
      ticket.pair = plan_.pair(index);
      if (!closed_[ticket.property]) {
        ++in_hand_;
        return true;
      }
      waiting_.emplace(ticket.number, ticket);
    }
    return false;
  }

  void check(const Subject& subject, Ticket& ticket) {
    ticket.setting = setting_for(subject, ticket);
    if (!ticket.drawn) return check_once(subject, ticket);
    for (std::uint64_t draw = 0; draw < kDrawsMost; ++draw) {
      ticket.test_case =
          case_of(ticket, properties_[ticket.property]->name, options_, draw, subject, served_);
      check_once(subject, ticket);
      const Verdict& verdict = ticket.seen.verdict;
      if (verdict.outcome != Outcome::declined) return;
      if (draw + 1 == kDrawsMost) return;
      if (stop_) {
        ticket.state = Ticket::State::lost;
        return;
      }
      ticket.declines.push_back(verdict.why);
    }
  }

  void check_once(const Subject& subject, Ticket& ticket) {
    announce(check_of(ticket));
    begin_under(subject, ticket.setting);
    ticket.seen = observe(subject, *properties_[ticket.property], ticket.test_case);
    // A worker that dies of the signal that stops us has not shown anything.
    const bool struck = stop_ && ticket.seen.verdict.outcome == Outcome::faulted;
    ticket.state = struck ? Ticket::State::lost : Ticket::State::ran;
  }

  /// Where the campaign draws, a line of `first` that names a setting has its own, and one that
  /// names none is run as it would be where nothing is drawn.
  std::optional<Setting> setting_for(const Subject& subject, const Ticket& ticket) const {
    if (!subject.begin_under) return std::nullopt;
    const EmulationOptions& asked = options_.emulation;
    if (ticket.drawn) return draw_setting(asked, options_.seed, ticket.campaign_index);
    const EmulationOptions usual = without_drawing(asked);
    Setting setting = ticket.setting.value_or(Setting{usual.numerics, *usual.schedule});
    if (asked.numerics != kDrawn) setting.numerics = asked.numerics;
    if (asked.schedule) setting.schedule = *asked.schedule;
    return setting;
  }

  PropertyCase check_of(const Ticket& ticket) const {
    return {std::string(properties_[ticket.property]->name), ticket.test_case, ticket.setting};
  }

  void announce(const PropertyCase& check) {
    if (!events_.about_to_run) return;
    const std::lock_guard lock(events_mutex_);
    events_.about_to_run(check);
  }

  /// Whoever hands in the lowest missing number counts it and all that wait behind it; the others
  /// go on running cases meanwhile.
  void hand_in(Ticket handed) {
    std::unique_lock lock(mutex_);
    const std::uint64_t number = handed.number;
    waiting_.emplace(number, std::move(handed));
    if (counting_) return;
    counting_ = true;
    for (auto next = waiting_.begin(); next != waiting_.end() && next->first == counted_;
         next = waiting_.begin()) {
      Ticket ticket = std::move(next->second);
      waiting_.erase(next);
      const bool counts = ticket.state == Ticket::State::ran && !closed_[ticket.property] && !deaf_;
      lock.unlock();
      const bool unserved = counts && ticket.drawn && is_unserved(ticket);
      const bool closes = counts && (count_safely(ticket) || unserved);
      lock.lock();
      if (counts && ticket.aim != nullptr) plan_.seen(*ticket.aim, ticket.test_case, ticket.seen);
      if (closes) closed_[ticket.property] = true;
      if (ticket.state == Ticket::State::lost) lost_ = std::min(lost_, ticket.number);
      if (ticket.drawn && ticket.state != Ticket::State::passed_over) --in_hand_;
      if (ticket.drawn && counts) ++drawn_counted_;
      ++counted_;
      if (counted_ >= first_.size()) {
        plan_.counted(options_.first_index + (counted_ - first_.size()), run_);
      }
      changed_.notify_all();
    }
    counting_ = false;
  }

  /// In the order of the numbers: whether the property of a drawn case is not served at all.
  bool is_unserved(const Ticket& ticket) {
    std::uint64_t& declined = declined_first_[ticket.property];
    if (declined == kOffered) return false;
    declined = ticket.seen.verdict.outcome == Outcome::declined ? declined + 1 : kOffered;
    return declined == kDeclinedFirst;
  }

  /// A listener that throws (a full disk) ends the campaign, not the program.
  bool count_safely(Ticket& ticket) {
    try {
      return count_ticket(ticket);
    } catch (const std::exception& error) {
      deaf_ = true;
      fail(error.what(), ticket);
      return true;
    }
  }

  /// True when its property is to be closed. Only one thread at a time is here.
  bool count_ticket(Ticket& ticket) {
    const bool failed = fails(ticket.seen);
    std::optional<Finding> finding;
    if (failed) finding = finding_of(ticket);
    count_redrawn(run_, ticket.property, ticket.declines);
    count(run_, ticket.property, ticket.test_case, ticket.seen);
    cover(ticket);
    if (ticket.setting) ++run_.models[model_of(*ticket.setting)];
    done_ = ticket.number + 1;
    if (finding) keep(std::move(*finding));
    const auto now = Clock::now();
    if (events_.progress && (failed || now - progress_ >= kProgressEvery)) {
      progress_ = now;
      run_.seconds = elapsed();
      run_.next_index = next_index();
      const std::lock_guard lock(events_mutex_);
      events_.progress(run_, share_done(ticket.number));
    }
    if (!failed) return false;
    const std::string kind = finding ? kind_of(ticket.seen) : "unreproduced";
    return ++kinds_[std::pair(ticket.property, kind)] >=
           (finding ? options_.findings_per_property : kUnreproducedMost);
  }

  void cover(const Ticket& ticket) {
    const Outcome outcome = ticket.seen.verdict.outcome;
    if (outcome == Outcome::vacuous || outcome == Outcome::declined) return;
    coverage_->count(properties_[ticket.property]->name, ticket.test_case.problem);
  }

  /// What a fresh subject makes of a case that failed. Nothing: it does not fail again, and is
  /// counted as what it was the second time.
  std::optional<Finding> finding_of(Ticket& ticket) {
    ShrinkEvents events;
    events.about_to_run = [&](const PropertyCase& check) { announce(check); };
    events.stop = [this] { return stop_.load(); };
    const PropertyCase check = check_of(ticket);
    Finding whole;
    whole.property = check.property;
    whole.found = whole.shrunk = check.test_case;
    whole.setting = check.setting;
    whole.verdict = ticket.seen.verdict;
    try {
      Observation again;
      auto finding = confirmed(make_subject_, check, ticket.seen, options_, events, again);
      if (!finding) {
        run_.unreproduced.push_back(
            {check.property, check.test_case, check.setting,
             fmt::format("{}: {}", kind_of(ticket.seen), ticket.seen.verdict.why)});
      }
      ticket.seen = std::move(again);
      return finding;
    } catch (const std::exception& error) {
      fail(error.what(), ticket);
    }
    return whole;
  }

  /// Two cases that shrink to the same one are one finding.
  void keep(Finding finding) {
    const auto same = [&finding](const Finding& other) {
      return other.property == finding.property && other.shrunk == finding.shrunk &&
             other.verdict.outcome == finding.verdict.outcome;
    };
    if (std::ranges::any_of(run_.findings, same)) return;
    run_.findings.push_back(std::move(finding));
    if (!events_.found) return;
    const std::lock_guard lock(events_mutex_);
    events_.found(run_.findings.back());
  }

  double share_done(std::uint64_t number) const {
    double share = 0;
    if (options_.budget_seconds) share = elapsed() / *options_.budget_seconds;
    if (options_.budget_cases) {
      // A number may be passed over because its property is closed; only what counts is progress.
      const std::uint64_t counted =
          std::min<std::uint64_t>(number + 1, first_.size()) + drawn_counted_;
      const double all = static_cast<double>(first_.size() + *options_.budget_cases);
      share = std::max(share, static_cast<double>(counted) / all);
    }
    return std::min(share, 1.0);
  }

  const std::function<Subject()>& make_subject_;
  const CampaignOptions& options_;
  const CampaignEvents& events_;
  const std::atomic<bool>& stop_;
  const Clock::time_point start_ = Clock::now();
  const std::vector<const Property*> properties_;
  std::vector<Ticket> first_;

  std::mutex mutex_;  // what follows, up to the next mutex
  std::condition_variable changed_;
  std::uint64_t next_ = 0;           // lowest number not handed out
  std::uint64_t counted_ = 0;        // lowest number not counted
  std::uint64_t in_hand_ = 0;        // drawn tickets handed out and not yet counted
  std::uint64_t drawn_counted_ = 0;  // drawn tickets that are part of the run
  std::map<std::uint64_t, Ticket> waiting_;
  Served served_;  // set before any thread begins
  Plan plan_;
  std::vector<bool> closed_;  // by property
  bool counting_ = false;     // some thread is counting: the run and what follows it are its own
  std::string error_;

  // Touched only by the thread that counts, and when all are joined.
  Run run_;
  std::optional<Coverage> coverage_;
  std::vector<std::uint64_t> declined_first_;  // by property: cases declined before one was not
  bool deaf_ = false;                          // a listener threw: nothing more counts
  std::uint64_t done_ = 0;                     // behind the highest number that is part of the run
  std::uint64_t lost_ = std::numeric_limits<std::uint64_t>::max();  // lowest that came to nothing
  std::map<std::pair<std::size_t, std::string>, std::uint64_t> kinds_;
  Clock::time_point progress_;

  std::mutex events_mutex_;
};

}  // namespace

std::string_view version() {
  return ATTEST_VERSION;
}

Run run_campaign(const std::function<Subject()>& make_subject, const CampaignOptions& options,
                 const CampaignEvents& events, const std::atomic<bool>& stop) {
  const std::function<Subject()> make_narrowed = [&] {
    return narrowed(make_subject(), options.where);
  };
  Campaign campaign(make_narrowed, options, events, stop);
  std::vector<Subject> subjects;
  for (unsigned i = 0; i < std::max(options.threads, 1U); ++i) subjects.push_back(make_narrowed());
  return campaign.run(subjects);
}

}  // namespace attest
