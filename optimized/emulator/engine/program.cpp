// Gathers what a kernel can reach, lays out its shared memory and parameters, and decodes it.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "optimized/emulator/engine/code.hpp"
#include "optimized/emulator/engine/decode.hpp"

namespace attest::emulator {
namespace {

u64 align_up(u64 value, u64 alignment) {
  return alignment == 0 ? value : (value + alignment - 1) / alignment * alignment;
}

template <class F>
void for_each_name(const ptx::Operand& o, const F& visit) {
  if (!o.name.empty()) visit(o.name);
  for (const ptx::Operand& e : o.elements) for_each_name(e, visit);
}

/// Indices of the functions that a kernel may call, itself included, and the names they mention.
struct Reach {
  std::set<u32> functions;
  std::set<std::string> names;
  bool calls = false, indirect = false, allocates = false;
};

void visit(const LoadedModuleState& m, u32 index, Reach& reach) {
  std::vector<u32> pending{index};
  while (!pending.empty()) {
    const u32 at = pending.back();
    pending.pop_back();
    const ptx::Function& f = m.module.functions[at];
    if (f.declared_only || !reach.functions.insert(at).second) continue;
    for (const ptx::Instruction& i : f.body) {
      reach.allocates |= i.opcode == "alloca";
      if (i.opcode == "call") {
        reach.calls = true;
        for (const ptx::Operand& o : i.operands)
          reach.indirect |= o.kind == ptx::Operand::Kind::reg;
      }
      for (const ptx::Operand& o : i.operands) {
        for_each_name(o, [&](const std::string& name) {
          reach.names.insert(name);
          if (const auto it = m.functions.find(name); it != m.functions.end())
            pending.push_back(it->second);
        });
      }
    }
  }
}

Reach reach_of(const LoadedModuleState& m, u32 entry) {
  Reach reach;
  visit(m, entry, reach);
  if (!reach.indirect) return reach;
  // Addresses of functions may come from any variable.
  for (const ptx::Variable& v : m.module.variables) {
    for (const auto& patch : v.patches) {
      if (const auto it = m.functions.find(patch.target.name); it != m.functions.end())
        visit(m, it->second, reach);
    }
  }
  return reach;
}

void lay_out_shared(const LoadedModuleState& m, const Reach& reach, Program& p) {
  std::vector<std::pair<std::string, const ptx::Variable*>> variables;
  for (const ptx::Variable& v : m.module.variables) {
    if (v.space == ptx::Space::shared && reach.names.contains(v.name))
      variables.emplace_back(v.name, &v);
  }
  for (u32 f : reach.functions) {
    for (const ptx::Variable& v : m.module.functions[f].variables) {
      if (v.space == ptx::Space::shared) variables.emplace_back(own_name(f, v.name), &v);
    }
  }
  u64 top = 0, alignment = 1;
  // Cooperative groups of several warps meet in memory that a GPU keeps before all variables.
  constexpr u64 kReservedBytes = 1024;
  if (reach.names.contains("reserved_smem_offset_1")) top = kReservedBytes;
  for (const auto& [name, v] : variables) {
    if (v->external) {
      alignment = std::max<u64>(alignment, v->alignment);
      continue;
    }
    top = align_up(top, std::max<u64>(v->alignment, 1));
    p.shared[name] = top;
    top += v->bytes;
  }
  // Dynamic shared memory begins after the static variables; all its names mean the same place.
  const bool dynamic = std::any_of(variables.begin(), variables.end(),
                                   [](const auto& one) { return one.second->external; });
  if (dynamic) top = align_up(top, std::max<u64>(alignment, 16));
  for (const auto& [name, v] : variables) {
    if (v->external) p.shared[name] = top;
  }
  p.static_shared_bytes = u32(top);
}

void lay_out_parameters(const ptx::Function& entry, Program& p) {
  u64 top = 0;
  for (const ptx::Parameter& parameter : entry.parameters) {
    const u64 natural =
        std::min<u64>(parameter.type == ptx::Type::b8 ? 1 : ptx::size_of(parameter.type), 8);
    top = align_up(top, std::max<u64>(parameter.alignment, natural));
    p.parameter_offsets.push_back(u32(top));
    top += parameter.bytes;
  }
  p.parameter_bytes = u32(top);
}

std::unique_ptr<Program> lay_out(const LoadedModuleState& m, u32 entry, const Reach& reach) {
  auto p = std::make_unique<Program>();
  p->module = &m;
  p->calls = reach.calls || reach.allocates;
  lay_out_shared(m, reach, *p);
  lay_out_parameters(m.module.functions[entry], *p);
  return p;
}

}  // namespace

std::string own_name(u32 function, const std::string& name) {
  return fmt::format("{} {}", function, name);  // no name of PTX has a space
}

std::unique_ptr<Program> build_program(LoadedModuleState& m, u32 entry, const InstructionSet& isa,
                                       bool worst) {
  const Reach reach = reach_of(m, entry);
  std::unique_ptr<Program> p = lay_out(m, entry, reach);
  p->worst = worst;
  for (u32 f : reach.functions) {
    auto code = std::make_unique<Code>();
    code->function = &m.module.functions[f];
    code->index = f;
    p->codes.emplace(f, std::move(code));
  }
  // Every frame is laid out before any call is decoded.
  std::vector<std::unique_ptr<Decoder>> decoders;
  for (auto& [index, code] : p->codes)
    decoders.push_back(std::make_unique<Decoder>(m, *p, *code, isa));
  for (auto& decoder : decoders) decoder->decode();
  for (auto& [index, code] : p->codes) {
    code->counts_at = p->counts;
    p->counts += u32(align_up(code->ops.size() + 1, kCountPage));
  }
  p->entry = p->codes.at(entry).get();
  return p;
}

}  // namespace attest::emulator
