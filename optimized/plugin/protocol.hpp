// What attest and its worker process write into the memory they share, and the messages that say
// so. Plain data of fixed size: both programs are built together, so there is no version here.
//
//   request memory: RequestHeader, then the tensors that are sent     (the worker may only read it)
//   reply memory:   ReplyHeader, then the tensors that come back
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "optimized/plugin/attest_subject.h"
#include "optimized/plugin/patterns.hpp"
#include "reference/subject.hpp"

namespace attest {

// Where the worker finds what it inherits.
inline constexpr int kControlDescriptor = 3;
inline constexpr int kRequestDescriptor = 4;
inline constexpr int kReplyDescriptor = 5;

inline constexpr std::uint64_t kPayloadAlignment = 64;  // of every tensor in shared memory
inline constexpr std::size_t kTensorsMax = 14;

enum class TensorName : std::uint8_t {
  q,
  k,
  v,
  bias,
  slopes,
  sinks,
  mask,
  seqlens_q,
  seqlens_kv,
  o,
  lse,
  new_k,
  new_v,
  cache_seqlens,
  new_seqlens,
  x,
  w,
  y,
  scratch,
  block_table,
  k_scales,
  v_scales,
  rope_cos_sin,
  pairs,
};

constexpr std::string_view name_of(TensorName name) {
  constexpr std::array<std::string_view, 24> kNames{"q",
                                                    "k",
                                                    "v",
                                                    "bias",
                                                    "alibi_slopes",
                                                    "sinks",
                                                    "mask",
                                                    "seqlens_q",
                                                    "seqlens_kv",
                                                    "o",
                                                    "lse",
                                                    "new_k",
                                                    "new_v",
                                                    "cache_seqlens",
                                                    "new_seqlens",
                                                    "x",
                                                    "w",
                                                    "y",
                                                    "scratch",
                                                    "block_table",
                                                    "k_scales",
                                                    "v_scales",
                                                    "rope_cos_sin",
                                                    "pairs"};
  return kNames[static_cast<std::size_t>(name)];
}

enum class Role : std::uint8_t { input, output, in_out };

/// A tensor as the plugin will see it, and where its numbers lie in shared memory. Numbers travel
/// dense and row-major, (batch, head, row, column).
struct TensorSpec {
  TensorName name;
  Element element;
  Role role;
  bool heads_inside_rows;  // layout bthd: heads of one row are neighbours
  bool strided;            // gaps lie behind its rows, heads and blocks
  bool far;                // and one of them is so wide that offsets exceed 32 bits
  std::uint8_t axes;       // bit a: axis a of the four is shown to the plugin
  std::int64_t extent[4];  // as the plugin sees it; spare slots included
  std::int64_t rows_sent;  // per block (batch entry, or page) and head; the rest are spare slots
  std::uint64_t payload;   // input, in_out: offset in request memory
  std::uint64_t answer;    // output, in_out: offset in reply memory
  // Offsets in request memory of one int32 per block: how many rows, and columns, a correct subject
  // may use. 0: all that were sent.
  std::uint64_t rows_reachable, columns_reachable;
};

struct RequestHeader {
  // Of a call: options that the emulator is to take from here on, as print(DeviceOptions) writes
  // them; empty: nothing changes.
  char emulator[256];
  std::uint64_t instruction_limit;  // of a call: warp instructions per launch on the emulator
  std::uint32_t operation;
  Poison poison;
  AttestProblem problem;
  std::uint32_t tensor_count;
  TensorSpec tensors[kTensorsMax];
};

enum class MessageKind : std::uint32_t { greeting, declines, call, profile };

/// In both directions; the worker answers with the kind it was asked for.
struct Message {
  MessageKind kind;
  std::uint64_t request_bytes, reply_bytes;  // sizes of the two memories
};

/// Written by a signal handler of the worker, so it holds numbers and short text only.
struct CrashRecord {
  std::int32_t signal;  // 0: none
  std::uint8_t memory_refused, stack_overflow, address_known, is_write;
  std::uint64_t address;
  std::uint8_t in_tensor, behind_end;  // the address lies in the fence of `tensor`
  TensorName tensor;
  std::uint64_t distance;  // bytes from that end
  char symbol[128];        // the function that crashed, where known
  char own_fault[256];     // when attest is at fault, and not the plugin: the sentence that says so
};

struct ReplyHeader {
  CrashRecord crash;
  // kind and text say how, and another process serves the next call. In a greeting: text says why
  // the load failed.
  std::uint8_t faulted;
  std::uint8_t declined;  // text says why
  char kind[32];
  char text[4096];            // of a profile: its lines, as emulator::print writes them
  char kernels[8192];         // of a call on the emulator: a line per kernel that was launched
  Counters counters;          // of a call; without launches when there is no emulator
  AttestPrecision precision;  // of a greeting: the table's; of declines: for this problem
  // greeting only
  char name[256], numerics[256];
  std::uint32_t promises, offers;  // offers: bit of the operation's number
  std::uint8_t counts;             // it runs on the emulator: calls come back with counters
  std::uint8_t on_gpu;             // where what executes cannot be seen
};

/// Copies text into a field of fixed size, cutting what does not fit.
template <std::size_t kBytes>
void put_text(char (&field)[kBytes], std::string_view text) {
  const std::size_t bytes = text.copy(field, kBytes - 1);
  field[bytes] = '\0';
}

/// Copies as many whole lines as there is room for.
template <std::size_t kBytes>
void put_lines(char (&field)[kBytes], std::string_view lines) {
  if (lines.size() >= kBytes) lines = lines.substr(0, lines.rfind('\n', kBytes - 2) + 1);
  put_text(field, lines);
}

}  // namespace attest
