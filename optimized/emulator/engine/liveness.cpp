// Live ranges and slot reuse.
#include "optimized/emulator/engine/liveness.hpp"

#include <algorithm>
#include <array>
#include <queue>
#include <string_view>

#include "optimized/emulator/engine/spelling.hpp"

namespace attest::emulator {
namespace {

using ptx::Operand;

void add_registers(const Operand& operand, std::vector<ptx::Register>& to) {
  if (operand.reg != ptx::kNoRegister) to.push_back(operand.reg);
  if (operand.second != ptx::kNoRegister) to.push_back(operand.second);
  for (const Operand& element : operand.elements) add_registers(element, to);
}

/// Opcodes whose first operand is no destination.
bool writes_nothing(std::string_view opcode) {
  static constexpr std::array kNone{"st",  "red",    "bra",  "bar",       "barrier",
                                    "ret", "exit",   "trap", "nanosleep", "prefetch",
                                    "brx", "membar", "fence"};
  return std::find(kNone.begin(), kNone.end(), opcode) != kNone.end();
}

/// bar.red is the one barrier with a result.
bool is_reducing_barrier(const ptx::Instruction& i) {
  return (i.opcode == "bar" || i.opcode == "barrier") &&
         std::find(i.modifiers.begin(), i.modifiers.end(), "red") != i.modifiers.end();
}

struct Block {
  u32 begin = 0, end = 0;
  std::vector<u32> successors;
};

bool ends_block(const ptx::Instruction& i) {
  return i.opcode == "bra" || i.opcode == "brx" || i.opcode == "ret" || i.opcode == "exit";
}

std::vector<Block> blocks_of(const ptx::Function& function) {
  const u32 count = u32(function.body.size());
  std::vector<u8> leader(count + 1, 0);
  if (count) leader[0] = 1;
  for (u32 l : function.leaders) leader[std::min(l, count)] = 1;
  for (u32 i = 0; i < count; ++i) {
    if (ends_block(function.body[i])) leader[i + 1] = 1;
  }
  std::vector<Block> blocks;
  std::vector<u32> block_at(count + 1, 0);
  for (u32 i = 0; i < count; ++i) {
    if (leader[i]) blocks.emplace_back().begin = i;
    block_at[i] = u32(blocks.size()) - 1;
    blocks.back().end = i + 1;
  }
  for (u32 b = 0; b < blocks.size(); ++b) {
    const ptx::Instruction& last = function.body[blocks[b].end - 1];
    const bool conditional = last.guard != ptx::kNoRegister;
    if (last.opcode == "bra" || last.opcode == "brx") {
      const auto add_target = [&](const Operand& o) {
        if (o.kind == Operand::Kind::label && u64(o.immediate) < count)
          blocks[b].successors.push_back(block_at[std::size_t(o.immediate)]);
      };
      for (const Operand& o : last.operands) {
        add_target(o);
        for (const Operand& e : o.elements) add_target(e);
      }
    }
    const bool falls = !ends_block(last) || conditional;
    if (falls && b + 1 < blocks.size()) blocks[b].successors.push_back(b + 1);
  }
  return blocks;
}

/// Which registers are live where blocks begin and end. Most registers are written and read within
/// one block: only the others are numbered, and have a bit in a row of words per block.
class Flow {
 public:
  Flow(const ptx::Function& function, const RegisterUses& uses, const std::vector<Block>& blocks)
      : number_(function.registers.size(), kNone) {
    number(uses, blocks);
    words_ = (registers_.size() + 63) / 64;
    for (auto* rows : {&reads_, &writes_, &in_, &out_}) rows->assign(words_ * blocks.size(), 0);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      for (u32 i = blocks[b].begin; i < blocks[b].end; ++i) {
        for (const ptx::Register r : uses.reads(i)) {
          if (number_[r] != kNone && !test(writes_, b, number_[r])) set(reads_, b, number_[r]);
        }
        // A guarded write leaves the old value in the other lanes: it does not end a live range.
        if (function.body[i].guard != ptx::kNoRegister) continue;
        for (const ptx::Register r : uses.writes(i)) {
          if (number_[r] != kNone) set(writes_, b, number_[r]);
        }
      }
    }
    solve(blocks);
  }

  /// Calls visit(register) for what is live at the beginning of a block, or at its end.
  template <class F>
  void for_each_live(std::size_t block, bool at_end, const F& visit) const {
    const u64* const row = (at_end ? out_ : in_).data() + block * words_;
    for (std::size_t w = 0; w < words_; ++w) {
      for (u64 bits = row[w]; bits; bits &= bits - 1)
        visit(registers_[w * 64 + u64(__builtin_ctzll(bits))]);
    }
  }

 private:
  using Rows = std::vector<u64>;
  bool test(const Rows& rows, std::size_t block, u32 i) const {
    return (rows[block * words_ + i / 64] >> (i % 64)) & 1;
  }
  void set(Rows& rows, std::size_t block, u32 i) const {
    rows[block * words_ + i / 64] |= u64{1} << (i % 64);
  }

  void number(const RegisterUses& uses, const std::vector<Block>& blocks) {
    std::vector<u32> home(number_.size(), kNone);  // the block that mentions it
    const auto mention = [&](ptx::Register r, u32 block, bool read_first) {
      if (home[r] == kNone && !read_first) home[r] = block;
      if (home[r] == block || number_[r] != kNone) return;
      number_[r] = u32(registers_.size());
      registers_.push_back(r);
    };
    for (u32 b = 0; b < blocks.size(); ++b) {
      for (u32 i = blocks[b].begin; i < blocks[b].end; ++i) {
        for (const ptx::Register r : uses.reads(i)) mention(r, b, true);
        for (const ptx::Register r : uses.writes(i)) mention(r, b, false);
      }
    }
  }

  /// Iterates to the fixed point, last block first.
  void solve(const std::vector<Block>& blocks) {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t b = blocks.size(); b-- > 0;) {
        const std::size_t row = b * words_;
        for (const u32 s : blocks[b].successors) {
          for (std::size_t w = 0; w < words_; ++w) out_[row + w] |= in_[s * words_ + w];
        }
        for (std::size_t w = row; w < row + words_; ++w) {
          const u64 in = reads_[w] | (out_[w] & ~writes_[w]);
          changed |= in != in_[w];
          in_[w] = in;
        }
      }
    }
  }

  std::vector<u32> number_;  // by register
  std::vector<ptx::Register> registers_;
  std::size_t words_ = 0;
  Rows reads_, writes_, in_, out_;  // reads_: before any write of the block
};

struct Range {
  u32 first = ~0u, last = 0;
  void include(u32 position) { first = std::min(first, position), last = std::max(last, position); }
};

std::vector<Range> ranges_of(const ptx::Function& function, const RegisterUses& uses) {
  const std::vector<Block> blocks = blocks_of(function);
  const Flow flow(function, uses, blocks);
  std::vector<Range> ranges(function.registers.size());
  for (std::size_t n = 0; n < blocks.size(); ++n) {
    const Block& b = blocks[n];
    flow.for_each_live(n, false, [&](ptx::Register r) { ranges[r].include(2 * b.begin); });
    flow.for_each_live(n, true, [&](ptx::Register r) { ranges[r].include(2 * b.end); });
    for (u32 i = b.begin; i < b.end; ++i) {
      // Reads are at even, writes at odd positions, so that a result may take the slot of an
      // operand that dies here; only where one handler does the whole instruction, though.
      const bool one_handler =
          function.body[i].operands.size() <= 4 && function.body[i].opcode != "mov" &&
          function.body[i].opcode != "setp" && function.body[i].opcode != "set" &&
          function.body[i].opcode != "shfl" && function.body[i].opcode != "call";
      for (const ptx::Register r : uses.reads(i))
        ranges[r].include(one_handler ? 2 * i : 2 * i + 1);
      for (const ptx::Register r : uses.writes(i)) {
        ranges[r].include(2 * i + 1);
        if (!one_handler) ranges[r].include(2 * i);
      }
    }
  }
  return ranges;
}

}  // namespace

SlotClass slot_class(ptx::Type type) {
  if (type == ptx::Type::pred) return SlotClass::predicate;
  return ptx::size_of(type) == 8 ? SlotClass::wide : SlotClass::narrow;
}

RegisterUses::RegisterUses(const ptx::Function& function) {
  begins_.reserve(2 * function.body.size() + 1);
  begins_.push_back(0);
  std::vector<ptx::Register> written;
  for (const ptx::Instruction& i : function.body) {
    const bool none = writes_nothing(i.opcode) && !is_reducing_barrier(i);
    const bool call = i.opcode == "call";
    written.clear();
    for (std::size_t n = 0; n < i.operands.size(); ++n) {
      const Operand& operand = i.operands[n];
      const bool results =
          call && n == 0 && operand.kind == Operand::Kind::arguments && i.operands.size() > 1;
      const bool destination = call ? results : n == 0 && !none;
      add_registers(operand,
                    destination && operand.kind != Operand::Kind::address ? written : all_);
    }
    if (i.guard != ptx::kNoRegister) {
      all_.push_back(i.guard);
      all_.insert(all_.end(), written.begin(), written.end());
    }
    begins_.push_back(u32(all_.size()));
    all_.insert(all_.end(), written.begin(), written.end());
    begins_.push_back(u32(all_.size()));
  }
}

SlotAssignment assign_slots(const ptx::Function& function, const RegisterUses& uses) {
  SlotAssignment assignment;
  assignment.slot.assign(function.registers.size(), 0);
  const std::vector<Range> ranges = ranges_of(function, uses);
  std::vector<u32> order;
  for (u32 r = 0; r < ranges.size(); ++r) {
    if (ranges[r].first != ~0u) order.push_back(r);
  }
  std::sort(order.begin(), order.end(), [&](u32 a, u32 b) {
    return std::pair(ranges[a].first, a) < std::pair(ranges[b].first, b);
  });

  using Ending = std::pair<u32, u32>;  // last position, slot
  using Endings = std::priority_queue<Ending, std::vector<Ending>, std::greater<>>;
  using Free = std::priority_queue<u32, std::vector<u32>, std::greater<>>;
  std::array<Endings, 3> live;
  std::array<Free, 3> free;
  std::array<u32, 3> used{0, 0, 1};  // predicate 0 is the carry of extended arithmetic
  for (u32 r : order) {
    const std::size_t c = std::size_t(slot_class(function.registers[r].type));
    while (!live[c].empty() && live[c].top().first < ranges[r].first) {
      free[c].push(live[c].top().second);
      live[c].pop();
    }
    if (free[c].empty()) {
      assignment.slot[r] = used[c]++;
    } else {
      assignment.slot[r] = free[c].top();
      free[c].pop();
    }
    live[c].push({ranges[r].last, assignment.slot[r]});
  }
  assignment.narrow = used[0], assignment.wide = used[1], assignment.predicates = used[2];
  return assignment;
}

}  // namespace attest::emulator
