// Module scope: directives, variables, function headers. Bodies are body.cpp's.
#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "optimized/emulator/ptx/body.hpp"

namespace attest::emulator::ptx {
namespace {

constexpr std::uint64_t kParameterBytesMax = 1U << 20;
constexpr std::uint64_t kThreadsMax = 1U << 16;

class ModuleParser {
 public:
  explicit ModuleParser(std::string_view text) : cursor_(text) {}

  Module parse() {
    while (!cursor_.at_end()) {
      if (cursor_.accept(';')) continue;
      const Position position = cursor_.position();
      if (cursor_.peek() == '@' && cursor_.peek(1) == '@') {
        cursor_.skip_line();  // @@DWARF: debug data of old compilers, one line each.
      } else {
        directive(cursor_.directive(), position);
      }
    }
    if (module_.version.empty()) cursor_.fail("wanted .version");
    for (const LateName& late : state_.ledger.late_names) {
      if (!state_.symbols.contains(late.name)) {
        Cursor::fail_at(late.position, quoted(late.name) + " is not declared");
      }
    }
    if (state_.file_max >= module_.files.size()) module_.files.resize(state_.file_max + 1);
    return std::move(module_);
  }

 private:
  void directive(std::string_view word, Position position) {
    if (word == "version") {
      version();
    } else if (word == "target") {
      target();
    } else if (word == "address_size") {
      if (cursor_.integer() != 64) Cursor::fail_at(position, "addresses have 64 bits here");
    } else if (word == "file") {
      parse_file(cursor_, module_);
    } else if (word == "section") {
      cursor_.directive();
      cursor_.skip_block();
    } else if (word == "pragma") {
      cursor_.skip_statement();
    } else {
      declaration(word, position);
    }
  }

  void version() {
    const Number number = cursor_.number();
    if (number.kind != Number::Kind::f64_bits) cursor_.fail("wanted a version such as 9.0");
    const double value = std::bit_cast<double>(number.bits);
    if (!(value >= 1 && value < 1000)) cursor_.fail("wanted a version such as 9.0");
    const auto tenths = static_cast<unsigned>(value * 10 + 0.5);
    module_.version = std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
  }

  void target() {
    module_.target = std::string(cursor_.name());
    while (cursor_.accept(',')) cursor_.name();
  }

  void declaration(std::string_view word, Position position) {
    bool external = false;
    while (word == "extern" || word == "visible" || word == "weak" || word == "common") {
      external |= word == "extern";
      position = cursor_.position();
      word = cursor_.directive();
    }
    if (word == "alias") {
      alias();
    } else if (word == "entry" || word == "func") {
      function(word == "entry");
    } else if (word == "global") {
      parse_module_variables(state_, Space::global, external);
    } else if (word == "const") {
      skip_bank();
      parse_module_variables(state_, Space::constant, external);
    } else if (word == "shared") {
      parse_module_variables(state_, Space::shared, external);
    } else {
      Cursor::fail_at(position, quoted(word) + " has no place in a module");
    }
  }

  /// .alias f, g; after both were declared: f is another name of g.
  void alias() {
    const Position position = cursor_.position();
    std::string name(cursor_.name());
    cursor_.require(',');
    std::string of(cursor_.name());
    cursor_.require(';');
    for (const std::string& one : {name, of}) {
      const auto found = state_.symbols.find(one);
      if (found == state_.symbols.end() || !found->second.is_function)
        Cursor::fail_at(position, quoted(one) + " is no function declared before");
    }
    module_.aliases.emplace_back(std::move(name), std::move(of));
  }

  void skip_bank() {
    if (!cursor_.accept('[')) return;
    cursor_.integer();
    cursor_.require(']');
  }

  void function(bool entry) {
    Function result;
    result.entry = entry;
    BodyParser body(state_, result);
    while (cursor_.accept_directive("attribute")) {
      cursor_.require('(');
      while (!cursor_.accept(')')) attribute_token();
    }
    if (cursor_.peek() == '(') parameters(result, body.scopes(), result.results);
    const Position position = cursor_.position();
    const std::string_view name = cursor_.name();
    result.name = std::string(name);
    if (cursor_.peek() == '(') parameters(result, body.scopes(), result.parameters);
    while (cursor_.peek() == '.') performance_directive(result);
    const std::size_t index = declare(name, position, cursor_.peek() != '{');
    if (cursor_.peek() == '{') {
      body.parse();
    } else {
      cursor_.require(';');
      result.declared_only = true;
      if (!module_.functions[index].declared_only) return;
    }
    module_.functions[index] = std::move(result);
  }

  void attribute_token() {
    if (cursor_.peek() == '.') {
      cursor_.directive();
    } else if (!cursor_.accept(',') && !cursor_.accept('(')) {
      cursor_.integer();
    }
  }

  /// The function's place; a definition takes that of its declaration.
  std::size_t declare(std::string_view name, Position position, bool only_declared) {
    const auto [found, is_new] =
        state_.symbols.try_emplace(name, ModuleSymbol{true, module_.functions.size()});
    if (is_new) {
      Function placeholder;
      placeholder.name = std::string(name);
      placeholder.declared_only = true;
      module_.functions.push_back(std::move(placeholder));
      return found->second.index;
    }
    if (!found->second.is_function)
      Cursor::fail_at(position, quoted(name) + " is a variable already");
    if (!only_declared && !module_.functions[found->second.index].declared_only) {
      Cursor::fail_at(position, quoted(name) + " is defined twice");
    }
    return found->second.index;
  }

  void parameters(Function& function, Scopes& scopes, std::vector<Parameter>& list) {
    cursor_.require('(');
    while (!cursor_.accept(')')) {
      const bool in_register = cursor_.accept_directive("reg");
      if (!in_register && !cursor_.accept_directive("param")) cursor_.fail("wanted .param or .reg");
      list.push_back(parameter(function, scopes, in_register));
      if (cursor_.peek() != ')') cursor_.require(',');
    }
  }

  Parameter parameter(Function& function, Scopes& scopes, bool in_register) {
    const Shape shape = parse_shape(cursor_);
    const Position position = cursor_.position();
    const std::string_view name = cursor_.name();
    std::vector<std::uint64_t> extents;
    const std::uint64_t count = parse_extents(cursor_, extents);
    const std::uint64_t bytes = count * size_of(shape.type) * shape.width;
    if (bytes > kParameterBytesMax) Cursor::fail_at(position, "a parameter is too large");
    Parameter result;
    result.name = std::string(name);
    result.alignment = shape.alignment != 0 ? shape.alignment : shape.natural_alignment();
    result.bytes = static_cast<std::uint32_t>(bytes);
    result.type = shape.type;
    if (!in_register) {
      scopes.declare_parameter(name, position);
    } else {
      if (shape.width > 1 || !extents.empty()) {
        Cursor::fail_at(position, "a parameter in a register is a scalar");
      }
      result.reg = static_cast<Register>(function.registers.size());
      scopes.declare_register(name, shape.type, position);
    }
    return result;
  }

  std::array<std::uint32_t, 3> extents() {
    std::array<std::uint32_t, 3> result{1, 1, 1};
    for (std::size_t i = 0; i < 3; ++i) {
      const Position position = cursor_.position();
      const std::uint64_t value = cursor_.integer();
      if (value == 0 || value > kThreadsMax) Cursor::fail_at(position, "no block is of that size");
      result[i] = static_cast<std::uint32_t>(value);
      if (i < 2 && !cursor_.accept(',')) break;
    }
    return result;
  }

  void performance_directive(Function& function) {
    constexpr std::array<std::string_view, 10> kWithNumbers{
        "minnctapersm", "maxnctapersm",         "maxnreg",  "maxclusterrank",  "reqnctapercluster",
        "abi_preserve", "abi_preserve_control", "noreturn", "explicitcluster", "blocksareclusters"};
    const Position position = cursor_.position();
    const std::string_view word = cursor_.directive();
    if (word == "maxntid") {
      function.maxntid = extents();
    } else if (word == "reqntid") {
      function.reqntid = extents();
    } else if (word == "pragma") {
      cursor_.skip_statement();
    } else if (std::find(kWithNumbers.begin(), kWithNumbers.end(), word) != kWithNumbers.end()) {
      // Hints to a register allocator, and cluster shapes, which no launch here has.
      while (cursor_.peek() >= '0' && cursor_.peek() <= '9') {
        cursor_.integer();
        cursor_.accept(',');
      }
    } else {
      Cursor::fail_at(position, quoted(word) + " has no place before a body");
    }
  }

  Cursor cursor_;
  Module module_;
  ModuleState state_{cursor_, module_, {}, {}, 0};
};

}  // namespace

Module parse(std::string_view text) {
  return ModuleParser(text).parse();
}

}  // namespace attest::emulator::ptx
