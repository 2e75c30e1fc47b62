// Runs kernels made of bytes: text as it is, or text that a generator writes from the bytes over
// the opcodes of opcodes.def and the forms of forms.def. Whatever a kernel does, endless loops,
// runaway recursion, wild pointers, absurd operands, it ends as a result, a finding or a
// SyntaxError. Knows nothing of what an instruction should compute.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "optimized/emulator/device.hpp"
#include "optimized/emulator/engine/spelling.hpp"

namespace attest::emulator {
namespace {

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  unsigned next() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  unsigned below(unsigned count) { return count == 0 ? 0 : next() % count; }
  bool once_in(unsigned count) { return next() % count == 1; }  // never when bytes have run out
  template <class T>
  const T& pick(const std::vector<T>& of) {
    const unsigned two = next() | next() << 8;
    return of[two % of.size()];
  }
  std::string_view rest() const { return {reinterpret_cast<const char*>(data_), left_}; }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

/// Every instruction there is, as written, one opcode after another.
struct Instructions {
  std::vector<std::vector<std::string>> by_opcode;
  Instructions() {
    for (unsigned o = 0; o < unsigned(Opcode::kCount); ++o) {
      std::string name(row_of(Opcode(o)).name);
      if (name.ends_with('_')) name.pop_back();
      std::vector<std::string>& spellings = by_opcode.emplace_back();
      for (const std::string& form : forms_of(Opcode(o))) spellings.push_back(name + "." + form);
      if (spellings.empty()) spellings.push_back(name);
    }
    by_opcode.push_back(kHandwritten);
  }
  // Of the opcodes without forms, what compilers write.
  inline static const std::vector<std::string> kHandwritten{"ld.global.b32",
                                                            "ld.global.nc.v4.b32",
                                                            "ld.shared.b64",
                                                            "ld.local.v2.b32",
                                                            "ld.param.u64",
                                                            "ld.volatile.shared.u8",
                                                            "ld.b16",
                                                            "ld.const.s16",
                                                            "st.global.b32",
                                                            "st.shared.v4.b32",
                                                            "st.local.b64",
                                                            "st.b8",
                                                            "st.volatile.global.u32",
                                                            "mov.b32",
                                                            "mov.b64",
                                                            "mov.pred",
                                                            "mov.u16",
                                                            "cvta.shared.u64",
                                                            "cvta.to.local.u64",
                                                            "isspacep.shared",
                                                            "bar.sync",
                                                            "bar.arrive",
                                                            "bar.red.popc.u32",
                                                            "bar.warp.sync",
                                                            "barrier.sync.aligned",
                                                            "bra",
                                                            "bra.uni",
                                                            "brx.idx",
                                                            "call",
                                                            "call.uni",
                                                            "ret",
                                                            "exit",
                                                            "trap",
                                                            "alloca.u64",
                                                            "stacksave.u64",
                                                            "stackrestore.u64",
                                                            "nanosleep.u32",
                                                            "elect.sync",
                                                            "membar.gl",
                                                            "cp.async.ca.shared.global",
                                                            "cp.async.commit_group",
                                                            "cp.async.wait_group",
                                                            "mbarrier.init.shared.b64",
                                                            "mbarrier.arrive.shared.b64",
                                                            "mbarrier.test_wait.shared.b64"};
};

class Writer {
 public:
  explicit Writer(Bytes& bytes) : bytes_(bytes) {}

  std::string module() {
    std::string text =
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
        ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
        ".extern .func free(.param .b64 p);\n"
        ".global .align 16 .b8 g[256];\n.const .align 8 .b8 c[64];\n"
        ".shared .align 16 .b8 s[512];\n.extern .shared .align 16 .b8 dynamic[];\n"
        ".func (.reg .b32 out) f(.reg .b32 in)\n{\n";
    text += body(false);
    text += "}\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)\n{\n";
    text += body(true);
    return text + "}\n";
  }

 private:
  static constexpr unsigned kLabels = 6;

  std::string body(bool entry) {
    std::string text =
        ".reg .b8 %y<3>;\n.reg .b16 %h<5>;\n.reg .b32 %r<9>;\n.reg .b64 %d<9>;\n.reg .pred %p<5>;\n"
        ".reg .b128 %q<2>;\n.local .align 16 .b8 l[128];\n";
    if (entry) {
      text +=
          "ld.param.u64 %d1, [a];\nld.param.u64 %d2, [b];\nld.param.u32 %r1, [n];\n"
          "mov.u32 %r2, %tid.x;\nmul.wide.u32 %d3, %r2, 4;\nadd.u64 %d4, %d1, %d3;\n"
          "mov.u32 %r3, s;\nmov.u32 %r4, l;\nsetp.lt.u32 %p1, %r2, %r1;\n";
    }
    const unsigned count = 1 + bytes_.below(40);
    for (unsigned i = 0; i < count && !bytes_.empty(); ++i) {
      if (placed_ < kLabels && bytes_.once_in(4)) text += fmt::format("L{}:\n", placed_++);
      text += instruction();
    }
    while (placed_ < kLabels) text += fmt::format("L{}:\n", placed_++);
    placed_ = 0;
    return text + "ret;\n";
  }

  std::string instruction() {
    static const Instructions all;
    const std::string& spelling = bytes_.pick(bytes_.pick(all.by_opcode));
    std::string text;
    if (bytes_.once_in(5))
      text += fmt::format("@{}%p{} ", bytes_.once_in(2) ? "!" : "", bytes_.below(4));
    text += spelling;
    if (bytes_.once_in(40)) text += bytes_.once_in(2) ? ".ftz" : ".sat";
    if (spelling.starts_with("bra")) return text + fmt::format(" L{};\n", bytes_.below(kLabels));
    if (spelling.starts_with("brx"))
      return text + fmt::format(" {}, {{L0, L{}}};\n", operand(32), bytes_.below(kLabels));
    if (spelling.starts_with("call")) return call(text);
    const unsigned count = bytes_.once_in(30) ? bytes_.below(7) : operands_of(spelling);
    const unsigned width = width_of(spelling);
    for (unsigned n = 0; n < count; ++n)
      text += fmt::format("{} {}", n ? "," : "", any_operand(spelling, n, width));
    return text + ";\n";
  }

  std::string call(const std::string& text) {
    switch (bytes_.below(4)) {
      case 0:
        return fmt::format(
            "{{ .param .b64 x; .param .b64 y; .param .b32 z; st.param.b64 [x], {};\nst.param.b64 "
            "[y], {};\n"
            "{} (z), vprintf, (x, y); }}\n",
            operand(64), operand(64), text);
      case 1:
        return fmt::format(
            "{{ .param .b64 x; .param .b64 z; st.param.b64 [x], {};\n{} (z), malloc, (x);\n"
            "ld.param.b64 %d5, [z]; }}\n",
            operand(64), text);
      case 2:
        return fmt::format("{{ .param .b64 x; st.param.b64 [x], {};\n{} free, (x); }}\n",
                           operand(64), text);
      default:
        return fmt::format("{} ({}), f, ({});\n", text, "%r5", "%r6");
    }
  }

  static unsigned operands_of(const std::string& spelling) {
    const std::string_view opcode = std::string_view(spelling).substr(0, spelling.find('.'));
    for (unsigned o = 0; o < unsigned(Opcode::kCount); ++o) {
      const OpcodeRow& row = row_of(Opcode(o));
      if (!row.name.starts_with(opcode) || row.operands.front() == '*') continue;
      return unsigned(std::count(row.operands.begin(), row.operands.end(), ' ')) + 1;
    }
    if (opcode == "shfl") return 5;
    if (opcode == "ret" || opcode == "exit" || opcode == "trap" || opcode == "membar") return 0;
    if (opcode == "bar" || opcode == "barrier" || opcode == "nanosleep") return 1;
    return opcode == "setp" || opcode == "set" || opcode == "vote" || opcode == "match" ||
                   opcode == "redux" || opcode == "atom" || opcode == "cp"
               ? 3
               : 2;
  }
  /// Of the last type the spelling names.
  static unsigned width_of(const std::string& spelling) {
    if (spelling.ends_with("pred")) return 1;
    if (spelling.ends_with("64")) return 64;
    if (spelling.ends_with("16") || spelling.ends_with("8")) return 16;
    return 32;
  }

  std::string any_operand(const std::string& spelling, unsigned n, unsigned width) {
    const bool memory = spelling.starts_with("ld") || spelling.starts_with("st") ||
                        spelling.starts_with("atom") || spelling.starts_with("red.") ||
                        spelling.starts_with("cp.async.c") || spelling.starts_with("mbarrier");
    const bool stores = spelling.starts_with("st") || spelling.starts_with("red.") ||
                        spelling.starts_with("cp") || spelling.starts_with("mbarrier.init");
    if (memory && n == (stores ? 0u : 1u) && !spelling.starts_with("stack"))
      return address(spelling);
    if (bytes_.once_in(24)) return strange(width);
    if (n == 0 && (spelling.starts_with("setp") || spelling.starts_with("testp")))
      return bytes_.once_in(4) ? "%p2|%p3" : "%p2";
    if (spelling.find(".v4") != std::string::npos)
      return fmt::format("{{{}, {}, {}, {}}}", reg(width), reg(width), reg(width), reg(width));
    if (spelling.find(".v2") != std::string::npos)
      return fmt::format("{{{}, {}}}", reg(width), reg(width));
    return n == 0 ? reg(width) : operand(width);
  }

  std::string address(const std::string& spelling) {
    const bool narrow =
        spelling.find("shared") != std::string::npos || spelling.find("local") != std::string::npos;
    static const std::vector<std::string> kNames{"s", "l", "g", "c", "dynamic", "a", "f"};
    const int offset = int(bytes_.below(9)) * 4 - (bytes_.once_in(8) ? 100 : 0);
    if (bytes_.once_in(4)) return fmt::format("[{}+{}]", bytes_.pick(kNames), offset);
    if (narrow) return fmt::format("[%r{}+{}]", 3 + bytes_.below(2), offset);
    return fmt::format("[%d{}+{}]", bytes_.below(8), offset);
  }

  std::string reg(unsigned width) {
    if (bytes_.once_in(30)) width = std::vector<unsigned>{1, 8, 16, 32, 64, 128}[bytes_.below(6)];
    switch (width) {
      case 1:
        return fmt::format("%p{}", bytes_.below(4));
      case 8:
        return fmt::format("%y{}", bytes_.below(2));
      case 16:
        return fmt::format("%h{}", bytes_.below(4));
      case 64:
        return fmt::format("%d{}", bytes_.below(8));
      case 128:
        return "%q0";
      default:
        return fmt::format("%r{}", bytes_.below(8));
    }
  }

  std::string operand(unsigned width) {
    static const std::vector<std::string> kConstants{"0",
                                                     "1",
                                                     "-1",
                                                     "31",
                                                     "32",
                                                     "0xffffffff",
                                                     "0x7fffffff",
                                                     "0x80000000",
                                                     "0f7f800000",
                                                     "0f7fc00000",
                                                     "0d7ff0000000000000",
                                                     "1.5",
                                                     "0x100000000",
                                                     "4096",
                                                     "7"};
    return bytes_.once_in(4) ? bytes_.pick(kConstants) : reg(width);
  }

  std::string strange(unsigned width) {
    static const std::vector<std::string> kStrange{
        "_",        "s",       "f",     "L0",         "%tid.x",
        "%clock64", "%laneid", "!%p1",  "{%r1, %r2}", "{%h1, _}",
        "_|%p1",    "%r1|%p2", "(%r1)", "[%r1]",      "{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r0}",
        "%nosuch"};
    return bytes_.once_in(3) ? operand(width) : bytes_.pick(kStrange);
  }

  Bytes& bytes_;
  unsigned placed_ = 0;  // labels of the current body
};

/// Launches the first entry of the module with two small buffers and a count, tiny limits.
void run(const std::string& text, Bytes& choices) {
  Device& device = Device::instance();
  DeviceOptions options;
  options.instruction_limit = 4000;
  const unsigned flags = choices.next();
  options.checks.initcheck = flags & 1;
  options.checks.racecheck = flags & 2;
  options.counters = flags & 4;
  if (flags & 8) options.numerics.worst = flags;
  options.schedule = flags & 16 ? flags : 0;
  device.configure(options);
  const ptx::Module parsed = ptx::parse(text);
  std::uint64_t bytes_of_variables = 0;
  for (const ptx::Variable& v : parsed.variables) bytes_of_variables += v.bytes;
  if (bytes_of_variables > (16u << 20)) return;  // the host would run out of memory, not the device
  const auto module = device.load(text);
  for (const ptx::Function& f : parsed.functions) {
    if (!f.entry || f.declared_only) continue;
    void* places[2] = {device.allocate(512), device.allocate(64)};
    std::vector<std::vector<std::uint64_t>> values;
    std::vector<void*> arguments;
    for (const std::uint32_t bytes : device.facts(*module, f.name).parameter_bytes) {
      auto& value = values.emplace_back(bytes / 8 + 1, 16);
      value[0] =
          values.size() <= 2 ? reinterpret_cast<std::uint64_t>(places[values.size() - 1]) : 16;
    }
    for (auto& value : values) arguments.push_back(value.data());
    device.launch(*module, f.name,
                  {.grid = {1 + (flags >> 7)},
                   .block = {flags & 32 ? 48u : 32u},
                   .dynamic_shared_bytes = 64,
                   .arguments = arguments.data()});
    for (void* place : places) device.release(place);
    device.reset_findings();
    break;
  }
}

}  // namespace
}  // namespace attest::emulator

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attest::emulator;
  static const bool quiet =
      std::freopen("/dev/null", "w", stdout) != nullptr;  // what kernels print
  (void)quiet;
  Bytes bytes(data, size);
  const bool raw = bytes.next() == '.';  // text begins with a directive
  try {
    if (raw) {
      const std::string text = "." + std::string(bytes.rest());
      Bytes none(nullptr, 0);
      run(text, none);
    } else {
      Bytes choices(data, std::min<std::size_t>(size, 1));
      run(Writer(bytes).module(), choices);
    }
  } catch (const ptx::SyntaxError&) {
  }
  return 0;
}
