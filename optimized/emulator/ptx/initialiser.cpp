// Initialisers: constants and addresses in the layout of their variable.
// An address is kept as a patch, since nobody has been placed yet.
#include <algorithm>
#include <bit>
#include <cstring>

#include "optimized/emulator/ptx/constant.hpp"
#include "optimized/emulator/ptx/variable.hpp"

namespace attest::emulator::ptx {
namespace {

/// The bits that `value` has in a variable of `type`.
std::uint64_t bits_as(const Cursor& cursor, Type type, const Constant& value) {
  const auto real = [&]() -> double {
    switch (value.kind) {
      case Number::Kind::integer:
        return value.is_unsigned ? static_cast<double>(value.bits)
                                 : static_cast<double>(static_cast<std::int64_t>(value.bits));
      case Number::Kind::f32_bits:
        return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits));
      case Number::Kind::f64_bits:
        return std::bit_cast<double>(value.bits);
    }
    return 0;
  };
  if (type == Type::f32) {
    if (value.kind == Number::Kind::f32_bits) return value.bits;
    return std::bit_cast<std::uint32_t>(static_cast<float>(real()));
  }
  if (type == Type::f64) {
    if (value.kind == Number::Kind::f64_bits) return value.bits;
    return std::bit_cast<std::uint64_t>(real());
  }
  if (value.kind == Number::Kind::f64_bits && size_of(type) < 8) {
    cursor.fail("a 64-bit float does not fit its variable");
  }
  return value.bits;
}

class Initialiser {
 public:
  Initialiser(Cursor& cursor, Variable& variable, const std::vector<std::uint64_t>& extents,
              Ledger& ledger)
      : cursor_(cursor),
        variable_(variable),
        extents_(extents),
        ledger_(ledger),
        element_bytes_(size_of(variable.type)),
        open_ended_(!extents.empty() && extents[0] == 0),
        end_(open_ended_ ? ledger.initial_bytes_left : variable.bytes) {
    // The stride of a level is what one item in its braces takes when it is braced itself.
    strides_.assign(extents.size(), element_bytes_);
    for (std::size_t i = extents.size(); i-- > 1;) {
      if (extents[i] == 0) cursor.fail("an array without elements has an initialiser");
      strides_[i - 1] = strides_[i] * extents[i];
    }
  }

  void read() {
    if (extents_.empty()) {
      element(0);
    } else {
      const std::uint64_t used = braces(0, 0, end_);
      if (open_ended_) variable_.bytes = (used + strides_[0] - 1) / strides_[0] * strides_[0];
    }
    reserve(variable_.bytes);
  }

 private:
  /// Reads `{…}` at `level` into [begin, end) and says where the last item ended.
  std::uint64_t braces(std::size_t level, std::uint64_t begin, std::uint64_t end) {
    cursor_.require('{');
    std::uint64_t at = begin;
    while (!cursor_.accept('}')) {
      const bool nested = cursor_.peek() == '{';
      const std::uint64_t bytes = nested ? strides_[level] : element_bytes_;
      if (nested && level + 1 >= extents_.size()) cursor_.fail("an initialiser is nested too deep");
      if (nested && (at - begin) % bytes != 0) cursor_.fail("a row begins inside another");
      if (bytes > end - at) cursor_.fail("an initialiser has too many items");
      if (nested) {
        braces(level + 1, at, at + bytes);
      } else {
        element(at);
      }
      at += bytes;
      if (cursor_.peek() != '}') cursor_.require(',');
    }
    return at;
  }

  void reserve(std::uint64_t bytes) {
    if (bytes <= variable_.initial.size()) return;
    const std::uint64_t more = bytes - variable_.initial.size();
    if (more > ledger_.initial_bytes_left) cursor_.fail("the module's initialisers are too large");
    ledger_.initial_bytes_left -= more;
    variable_.initial.resize(bytes);
  }

  void element(std::uint64_t at) {
    reserve(at + element_bytes_);
    if (cursor_.at_name()) {
      if (element_bytes_ < 4) cursor_.fail("an address does not fit its variable");
      variable_.patches.push_back({at, symbol(), static_cast<std::uint32_t>(element_bytes_)});
      return;
    }
    const Constant value = parse_constant(cursor_);
    if (value.kind == Number::Kind::integer && cursor_.accept('(')) {
      address_byte(at, value.bits);
      return;
    }
    const std::uint64_t bits = bits_as(cursor_, variable_.type, value);
    std::memcpy(variable_.initial.data() + at, &bits, std::min<std::size_t>(element_bytes_, 8));
  }

  SymbolReference symbol() {
    LateName late{.name = {}, .position = cursor_.position()};
    late.name = cursor_.name();
    const bool generic = late.name == "generic" && cursor_.accept('(');
    if (generic) {
      late.position = cursor_.position();
      late.name = cursor_.name();
      cursor_.require(')');
    }
    ledger_.late_names.push_back(late);
    SymbolReference result{std::string(late.name), 0};
    if (cursor_.accept('+')) {
      result.addend = parse_integer_constant(cursor_);
    } else if (cursor_.peek() == '-') {
      result.addend = parse_integer_constant(cursor_);
    }
    return result;
  }

  /// `0xFF00(symbol)`: one byte of an address, which packed structs are made of. Bytes arrive from
  /// the lowest up and are gathered into one patch.
  void address_byte(std::uint64_t at, std::uint64_t mask) {
    const auto byte = static_cast<std::uint32_t>(std::countr_zero(mask) / 8);
    if (mask == 0 || mask != std::uint64_t{0xff} << (8 * byte) || element_bytes_ != 1) {
      cursor_.fail("wanted a mask of one byte of an address");
    }
    SymbolReference target = symbol();
    cursor_.require(')');
    if (byte == 0) {
      variable_.patches.push_back({at, std::move(target), 1});
      return;
    }
    if (variable_.patches.empty()) cursor_.fail("the bytes of an address begin with the lowest");
    Variable::Patch& patch = variable_.patches.back();
    if (patch.target.name != target.name || patch.target.addend != target.addend ||
        patch.bytes != byte || patch.offset + byte != at) {
      cursor_.fail("the bytes of an address are not in order");
    }
    ++patch.bytes;
  }

  Cursor& cursor_;
  Variable& variable_;
  const std::vector<std::uint64_t>& extents_;
  Ledger& ledger_;
  std::vector<std::uint64_t> strides_;
  std::uint64_t element_bytes_;
  bool open_ended_;
  std::uint64_t end_;
};

}  // namespace

void parse_initialiser(Cursor& cursor, Variable& variable,
                       const std::vector<std::uint64_t>& extents, Ledger& ledger) {
  Initialiser(cursor, variable, extents, ledger).read();
}

}  // namespace attest::emulator::ptx
