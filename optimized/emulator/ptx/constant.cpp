// Constant expressions by precedence climbing. Nesting is limited, so that no text can exhaust the
// stack; arithmetic wraps, so that no text can overflow.
#include "optimized/emulator/ptx/constant.hpp"

#include <array>
#include <string_view>

namespace attest::emulator::ptx {
namespace {

constexpr int kNestingMax = 64;
constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;
constexpr std::uint64_t kWarpSize = 32;

struct Operator {
  std::string_view spelling;
  int precedence;
};

// Longer spellings first, so that "<<" is not read as "<".
constexpr std::array<Operator, 18> kOperators{{{"<<", 8},
                                               {">>", 8},
                                               {"<=", 7},
                                               {">=", 7},
                                               {"==", 6},
                                               {"!=", 6},
                                               {"&&", 2},
                                               {"||", 1},
                                               {"*", 10},
                                               {"/", 10},
                                               {"%", 10},
                                               {"+", 9},
                                               {"-", 9},
                                               {"<", 7},
                                               {">", 7},
                                               {"&", 5},
                                               {"^", 4},
                                               {"|", 3}}};

const Operator* operator_at(const Cursor& cursor) {
  for (const Operator& row : kOperators) {
    if (cursor.peek() == row.spelling[0] &&
        (row.spelling.size() == 1 || cursor.peek(1) == row.spelling[1])) {
      return &row;
    }
  }
  return nullptr;
}

std::uint64_t divide(const Cursor& cursor, Constant left, Constant right, bool remainder) {
  if (right.bits == 0) cursor.fail("a constant is divided by zero");
  if (left.is_unsigned || right.is_unsigned) {
    return remainder ? left.bits % right.bits : left.bits / right.bits;
  }
  const auto a = static_cast<std::int64_t>(left.bits), b = static_cast<std::int64_t>(right.bits);
  // The most negative integer over -1 does not fit; it wraps to itself, as on the device.
  if (b == -1) return remainder ? 0 : std::uint64_t{0} - left.bits;
  return static_cast<std::uint64_t>(remainder ? a % b : a / b);
}

bool less(Constant left, Constant right) {
  if (left.is_unsigned || right.is_unsigned) return left.bits < right.bits;
  return static_cast<std::int64_t>(left.bits) < static_cast<std::int64_t>(right.bits);
}

std::uint64_t shift_right(Constant left, std::uint64_t count) {
  if (left.is_unsigned) return count > 63 ? 0 : left.bits >> count;
  const auto value = static_cast<std::int64_t>(left.bits);
  return static_cast<std::uint64_t>(value >> (count > 63 ? 63 : count));
}

std::uint64_t apply(const Cursor& cursor, std::string_view spelling, Constant a, Constant b) {
  if (spelling == "+") return a.bits + b.bits;
  if (spelling == "-") return a.bits - b.bits;
  if (spelling == "*") return a.bits * b.bits;
  if (spelling == "/") return divide(cursor, a, b, false);
  if (spelling == "%") return divide(cursor, a, b, true);
  if (spelling == "<<") return b.bits > 63 ? 0 : a.bits << b.bits;
  if (spelling == ">>") return shift_right(a, b.bits);
  if (spelling == "<") return less(a, b);
  if (spelling == ">") return less(b, a);
  if (spelling == "<=") return !less(b, a);
  if (spelling == ">=") return !less(a, b);
  if (spelling == "==") return a.bits == b.bits;
  if (spelling == "!=") return a.bits != b.bits;
  if (spelling == "&") return a.bits & b.bits;
  if (spelling == "^") return a.bits ^ b.bits;
  if (spelling == "|") return a.bits | b.bits;
  if (spelling == "&&") return a.bits != 0 && b.bits != 0;
  return a.bits != 0 || b.bits != 0;
}

class Expression {
 public:
  explicit Expression(Cursor& cursor) : cursor_(cursor) {}

  Constant ternary() {
    const Constant condition = binary(1);
    if (!cursor_.accept('?')) return condition;
    enter();
    const Constant yes = ternary();
    cursor_.require(':');
    const Constant no = ternary();
    --depth_;
    require_integer(condition);
    return condition.bits != 0 ? yes : no;
  }

 private:
  void enter() {
    if (++depth_ > kNestingMax) cursor_.fail("a constant is nested too deeply");
  }
  void require_integer(const Constant& value) const {
    if (value.kind != Number::Kind::integer) cursor_.fail("a float cannot be calculated with");
  }

  Constant binary(int precedence_min) {
    Constant left = unary();
    for (const Operator* found = operator_at(cursor_);
         found != nullptr && found->precedence >= precedence_min; found = operator_at(cursor_)) {
      for (std::size_t i = 0; i < found->spelling.size(); ++i) cursor_.accept(found->spelling[i]);
      enter();
      const Constant right = binary(found->precedence + 1);
      --depth_;
      require_integer(left);
      require_integer(right);
      left.bits = apply(cursor_, found->spelling, left, right);
      left.is_unsigned |= right.is_unsigned;
    }
    return left;
  }

  Constant unary() {
    enter();
    const Constant result = unary_within();
    --depth_;
    return result;
  }

  Constant unary_within() {
    if (cursor_.accept('+')) return unary();
    if (cursor_.accept('-')) {
      Constant value = unary();
      switch (value.kind) {
        case Number::Kind::integer:
          value.bits = std::uint64_t{0} - value.bits;
          value.is_unsigned = false;
          break;
        case Number::Kind::f32_bits:
          value.bits ^= std::uint64_t{1} << 31;
          break;
        case Number::Kind::f64_bits:
          value.bits ^= kSignBit;
          break;
      }
      return value;
    }
    if (cursor_.peek() == '!' || cursor_.peek() == '~') {
      const bool logical = cursor_.accept('!');
      if (!logical) cursor_.require('~');
      Constant value = unary();
      require_integer(value);
      value.bits = logical ? value.bits == 0 : ~value.bits;
      return value;
    }
    if (cursor_.accept('(')) return parenthesised();
    if (cursor_.at_name()) {
      if (cursor_.name() != "WARP_SZ") cursor_.fail("a name is not a constant");
      return {Number::Kind::integer, kWarpSize, false};
    }
    const Number number = cursor_.number();
    return {number.kind, number.bits,
            number.kind == Number::Kind::integer && (number.bits & kSignBit) != 0};
  }

  /// After the opening parenthesis: a cast to .s64 or .u64, or an expression.
  Constant parenthesised() {
    if (cursor_.peek() == '.') {
      const std::string_view type = cursor_.directive();
      if (type != "s64" && type != "u64") cursor_.fail("a constant is cast to .s64 or .u64 only");
      cursor_.require(')');
      Constant value = unary();
      require_integer(value);
      value.is_unsigned = type == "u64";
      return value;
    }
    const Constant value = ternary();
    cursor_.require(')');
    return value;
  }

  Cursor& cursor_;
  int depth_ = 0;
};

}  // namespace

bool at_constant(const Cursor& cursor) {
  const char c = cursor.peek();
  const bool signed_or_grouped = c == '-' || c == '+' || c == '~' || c == '(';
  return signed_or_grouped || (c >= '0' && c <= '9');
}

Constant parse_constant(Cursor& cursor) {
  return Expression(cursor).ternary();
}

std::int64_t parse_integer_constant(Cursor& cursor) {
  const Position start = cursor.position();
  const Constant value = parse_constant(cursor);
  if (value.kind != Number::Kind::integer) Cursor::fail_at(start, "wanted an integer, not a float");
  return static_cast<std::int64_t>(value.bits);
}

}  // namespace attest::emulator::ptx
