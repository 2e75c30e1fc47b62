// The names of one function body while it is read: registers, memory and labels, each in the block
// that declares it. Knows how names resolve; does not know what stands between them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "optimized/emulator/ptx/cursor.hpp"
#include "optimized/emulator/ptx/module.hpp"

namespace attest::emulator::ptx {

/// What a name in a body stands for.
struct Named {
  enum class Kind : std::uint8_t { reg, vector, memory, prototype, targets };
  Kind kind = Kind::reg;
  Register first = kNoRegister;  // reg; first component of a vector register
  std::uint32_t count = 1;       // components; index into the lists of targets
  std::string memory = {};       // memory: the variable's name, unique in the function
};

/// An operand that names something not declared yet: a label further down, most often.
struct ForwardUse {
  std::uint32_t instruction = 0, operand = 0;
  std::int32_t element = -1;  // of a vector or of arguments; -1: the operand itself
  std::string_view name;
  Position position;
  bool only_label = false;  // bra: nothing but a label will do
};

/// One branch target of a .branchtargets list.
struct Target {
  std::string_view name;
  Position position;
};

class Scopes {
 public:
  explicit Scopes(Function& function);

  void open(const Cursor& cursor);
  void close();
  std::size_t depth() const { return scopes_.size(); }

  void declare_register(std::string_view name, Type type, Position position);
  /// `%r<count>`: the registers come into being when first named, so that a declaration of
  /// thousands costs nothing.
  void declare_registers(std::string_view prefix, std::uint64_t count, Type type,
                         Position position);
  void declare_vector(std::string_view name, std::uint32_t components, Type type,
                      Position position);
  /// A parameter or result, which the function already lists.
  void declare_parameter(std::string_view name, Position position);
  /// Adds `variable` to the function. Blocks that do not overlap may use one name for different
  /// variables: then the later one is renamed, `name@2`. A .param of the same shape is not renamed
  /// but shared, since the lists of a call are dead when its block closes.
  void declare_variable(Variable variable, std::string_view name, Position position);
  void declare_prototype(std::string_view name, Position position);
  void declare_targets(std::string_view name, std::vector<Target> targets, Position position);

  /// The innermost declaration, or nullptr.
  const Named* find(std::string_view name);
  const std::vector<Target>& targets(const Named& named) const { return lists_[named.count]; }

  /// The label stands before the instruction that comes next.
  void place_label(std::string_view name, Position position);
  void use_later(ForwardUse use);
  /// Uses that no label of any block explained, once the outermost block is closed.
  std::vector<ForwardUse>& unexplained() { return unexplained_; }

 private:
  struct Range {
    Type type;
    std::uint64_t count;
  };
  struct Scope {
    std::unordered_map<std::string_view, Named> names;
    std::unordered_map<std::string_view, Range> ranges;
    std::unordered_map<std::string_view, std::uint32_t> labels;
    std::vector<ForwardUse> uses;
  };
  void declare(std::string_view name, Named named, Position position);
  Register add_register(std::string_view name, Type type);
  const Named* find_in_range(Scope& scope, std::string_view name);
  void explain(const ForwardUse& use, std::uint32_t instruction);

  Function& function_;
  std::vector<Scope> scopes_;
  std::vector<std::vector<Target>> lists_;
  std::vector<ForwardUse> unexplained_;
  /// A .param variable of a closed block, which a later block may use again.
  struct Storage {
    std::string memory;
    bool live = false;  // its block is still open
  };
  std::unordered_map<std::string, Storage> storage_;               // by name and shape
  std::unordered_map<std::string_view, std::uint32_t> variables_;  // how many have the name
  std::vector<std::vector<Storage*>> block_storage_;
};

}  // namespace attest::emulator::ptx
