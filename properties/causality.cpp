// Causality: the output of a row does not depend on keys and values it cannot see: later ones under
// a causal mask, those outside a window, masked ones, those behind a length, and memory that holds
// no key at all.
// Over the reals: their weights are exactly zero.
// In floating point: exactly too, so rows are compared bit for bit; no bound is needed.
// Sees: masks off by one on any tile, 0 x NaN from stale memory, masks that add instead of select.
#include <algorithm>
#include <cmath>
#include <vector>

#include "properties/ask.hpp"
#include "properties/catalogue.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"
#include "properties/unmoved.hpp"
#include "reference/formats.hpp"

namespace attest {
namespace {

using KeySet = std::vector<std::vector<bool>>;  // per batch entry, which keys

/// The keys that row `row` cannot see (the last row there is, in shorter batch entries).
KeySet hidden_from(const Problem& problem, const Values& values, Index row) {
  KeySet hidden;
  for (Index b = 0; b < problem.batch; ++b) {
    const Index rows = query_length(problem, b);
    std::vector<bool> keys(static_cast<std::size_t>(problem.seqlen_kv), false);
    if (rows > 0) {
      keys = visible_keys(problem, values, b, std::min(row, rows - 1));
      keys.flip();
    }
    hidden.push_back(std::move(keys));
  }
  return hidden;
}

bool is_empty(const KeySet& set) {
  return std::all_of(set.begin(), set.end(), [](const auto& keys) { return count_of(keys) == 0; });
}

/// Another finite number: of a size that no bit of it survives, or as large as the format allows.
double changed(Format format, double number, bool huge, Index parity) {
  if (huge) return (parity % 2 == 0 ? 1 : -1) * facts(format).max_finite;
  return number == 0 ? 1 : -number;
}

void change_rows(Tensor& tensor, const KeySet& set, bool huge) {
  for (Index b = 0; b < tensor.extent[0]; ++b) {
    for (Index j = 0; j < tensor.extent[2]; ++j) {
      if (!set[static_cast<std::size_t>(b)][static_cast<std::size_t>(j)]) continue;
      for (Index g = 0; g < tensor.extent[1]; ++g) {
        for (Index c = 0; c < tensor.extent[3]; ++c) {
          tensor.set(b, g, j, c, changed(tensor.format, tensor.at(b, g, j, c), huge, j + c));
        }
      }
    }
  }
}

bool sees_any(const Problem& problem, const Values& values, Index b, Index i,
              const std::vector<bool>& set) {
  for (Index j = 0; j < problem.seqlen_kv; ++j) {
    if (set[static_cast<std::size_t>(j)] && visible(problem, values, b, i, j)) return true;
  }
  return false;
}

}  // namespace

Verdict causality(const Subject& subject, const Problem& problem, const Values& values) {
  const Answer before = ask_attention(subject, problem, values);
  if (before.instead) return *before.instead;
  const Unmoved unmoved(subject, problem, values);
  Judge judge;

  for (const Poison poison : {Poison::huge, Poison::small}) {
    const Answer after = ask_attention(subject, problem, values, poison);
    if (after.instead) return *after.instead;
    for_each_row(problem, [&](Index b, Index h, Index i) {
      unmoved.row(judge, before.reply, after.reply, b, h, i, "other poison in unreachable memory");
    });
  }

  // Three rows choose what is hidden: the first, one in the middle, the last. Every row that sees
  // none of it must stay as it was.
  std::vector<KeySet> done;
  for (const Index row : {Index{0}, problem.seqlen_q / 2, problem.seqlen_q - 1}) {
    const KeySet hidden = hidden_from(problem, values, std::max<Index>(row, 0));
    if (is_empty(hidden) || std::find(done.begin(), done.end(), hidden) != done.end()) continue;
    done.push_back(hidden);
    for (const bool huge : {false, true}) {
      Values others = values;
      change_rows(others.k, hidden, huge);
      change_rows(others.v, hidden, huge);
      const Answer after = ask_attention(subject, problem, others);
      if (after.instead) return *after.instead;
      for_each_row(problem, [&](Index b, Index h, Index i) {
        if (sees_any(problem, values, b, i, hidden[static_cast<std::size_t>(b)])) return;
        unmoved.row(judge, before.reply, after.reply, b, h, i,
                    huge ? "huge invisible keys" : "other invisible keys");
      });
    }
  }
  return judge.verdict("no row to compare");
}

}  // namespace attest
