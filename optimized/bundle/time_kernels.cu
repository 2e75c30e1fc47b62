// Times the kernels of a plugin through the C ABI: median of events, TFLOP/s or GB/s, and the share
// of what the machine was measured to do at most.
// Usage: time_kernels PLUGIN [--repetitions N] [--batch N]
// The calls are those of `attest measure --cost`, with N times the batch, since one of them alone
// would leave most of a GPU idle. Exit code 1: a call failed, or left NaN where numbers belong.
// Judges no number beyond that: what is right is the gate's business.
#include <dlfcn.h>

#include <cstring>
#include <string>

#include "optimized/bundle/ceilings.cuh"
#include "optimized/bundle/device_tensors.cuh"
#include "optimized/plugin/usual_calls.hpp"

namespace attest::bundle {
namespace {

using Call = UsualCall;

const char* name_of(uint32_t format) {
  constexpr const char* kNames[] = {"f32", "f16", "bf16", "e4m3", "e5m2", "i8"};
  return kNames[format];
}

std::string text_of(const Call& c) {
  constexpr const char* kOperations[] = {"prefill", "decode", "append", "projection"};
  char text[160];
  std::snprintf(text, sizeof text, "%s q=%ldx%ldx%ldx%ld kv=%ldx%ld %s%s%s%s%s",
                kOperations[c.operation], c.batch, c.num_heads_q, c.seqlen_q, c.head_dim,
                c.num_heads_kv, c.seqlen_kv, name_of(c.format), c.causal ? " causal" : "",
                c.page_size > 0 ? " paged" : "", c.cache == ATTEST_E4M3 ? " e4m3" : "",
                c.rope != ATTEST_ROPE_NONE ? " rope" : "");
  return text;
}

AttestProblem problem_of(const Call& c) {
  AttestProblem p{};
  p.abi_version = ATTEST_ABI_VERSION;
  p.struct_bytes = sizeof p;
  p.batch = c.batch, p.num_heads_q = c.num_heads_q, p.num_heads_kv = c.num_heads_kv;
  p.seqlen_q = c.seqlen_q, p.seqlen_kv = c.seqlen_kv, p.head_dim = c.head_dim,
  p.head_dim_v = c.head_dim;
  p.input = c.format, p.output = c.format;
  p.flags = c.causal ? ATTEST_CAUSAL : 0;
  p.window_left = -1, p.window_right = -1;
  p.softmax_scale = 1 / std::sqrt(static_cast<float>(c.head_dim));
  p.capacity = c.seqlen_kv, p.num_splits = c.num_splits;
  p.cache = c.cache, p.scales = c.scales, p.rope = c.rope, p.page_size = c.page_size;
  return p;
}

/// Page n of a batch entry lies far from page n + 1, as in a cache that was long in use.
std::vector<int32_t> scattered_pages(int64_t pages) {
  std::vector<int32_t> table(static_cast<size_t>(pages));
  int64_t step = pages / 2 + 1;
  while (std::gcd(step, pages) != 1) ++step;
  for (int64_t n = 0; n < pages; ++n) {
    table[static_cast<size_t>(n)] = static_cast<int32_t>(n * step % pages);
  }
  return table;
}

/// k, v, block table and scales: members of the same names in AttestAttention and AttestAppend.
template <class Request>
void place_cache(const Call& c, Tensors& tensors, Request& request) {
  const int64_t pages = c.page_size > 0 ? (c.seqlen_kv + c.page_size - 1) / c.page_size : 0;
  const int64_t blocks = pages > 0 ? c.batch * pages : c.batch;
  const int64_t slots = pages > 0 ? c.page_size : c.seqlen_kv;
  request.k = tensors.drawn(c.cache, {blocks, c.num_heads_kv, slots, c.head_dim});
  request.v = tensors.drawn(c.cache, {blocks, c.num_heads_kv, slots, c.head_dim});
  if (pages > 0) {
    request.block_table = tensors.of(scattered_pages(blocks), kDLInt, {c.batch, pages});
  }
  if (c.scales == ATTEST_SCALES_HEAD) {
    const std::vector<float> ones(static_cast<size_t>(c.num_heads_kv), 1.0F);
    request.k_scales = tensors.of(ones, kDLFloat, {c.num_heads_kv});
    request.v_scales = tensors.of(ones, kDLFloat, {c.num_heads_kv});
  }
}

[[noreturn]] void fail(const Call& c, const char* why) {
  std::fprintf(stderr, "time_kernels: %s: %s\n", text_of(c).c_str(), why);
  std::exit(1);
}

/// Runs the operation as often as asked and returns the median; the request outlives the runs.
template <class Request>
double timed(const AttestSubject& subject, const Call& c, int32_t (*operation)(const Request*),
             const Request& request, int repetitions) {
  if (operation == nullptr) fail(c, "the plugin does not offer it");
  const double seconds = median_seconds(repetitions, [&] {
    if (operation(&request) == 0) return;
    fail(c, subject.last_error != nullptr ? subject.last_error() : "refused");
  });
  if (const cudaError_t status = cudaDeviceSynchronize()) fail(c, cudaGetErrorString(status));
  return seconds;
}

/// Outputs arrive as NaN: a kernel that never ran must not look quick. Domain: f32, f16, bf16.
void require_finite(const Call& c, const DLTensor& tensor) {
  size_t count = 1;
  for (int i = 0; i < tensor.ndim; ++i) count *= static_cast<size_t>(tensor.shape[i]);
  std::vector<unsigned char> bytes(count * tensor.dtype.bits / 8);
  require(cudaMemcpy(bytes.data(), tensor.data, bytes.size(), cudaMemcpyDeviceToHost),
          "cudaMemcpy");
  // A number that is not finite has all bits of its exponent set; little-endian, it ends there.
  const size_t width = tensor.dtype.bits / 8;
  const unsigned exponent = width == 2 && tensor.dtype.code == kDLFloat ? 0x7C00U : 0x7F80U;
  for (size_t end = width; end <= bytes.size(); end += width) {
    const unsigned high = bytes[end - 1] * 256U + bytes[end - 2];
    if ((high & exponent) == exponent) fail(c, "an output is not finite");
  }
}

double time_attention(const AttestSubject& subject, const Call& c, int repetitions) {
  Tensors tensors;
  AttestAttention request{};
  request.abi_version = ATTEST_ABI_VERSION;
  request.struct_bytes = sizeof request;
  request.problem = problem_of(c);
  request.q = tensors.drawn(c.format, {c.batch, c.num_heads_q, c.seqlen_q, c.head_dim});
  place_cache(c, tensors, request);
  request.o = tensors.poisoned(c.format, {c.batch, c.num_heads_q, c.seqlen_q, c.head_dim});
  request.lse = tensors.poisoned(ATTEST_F32, {c.batch, c.num_heads_q, c.seqlen_q});
  if (subject.scratch_bytes != nullptr) {
    request.scratch_bytes = subject.scratch_bytes(c.operation, &request.problem);
    request.scratch = tensors.bytes(static_cast<size_t>(request.scratch_bytes));
  }
  const auto operation = c.operation == ATTEST_DECODE ? subject.decode : subject.prefill;
  const double seconds = timed(subject, c, operation, request, repetitions);
  require_finite(c, request.o);
  require_finite(c, request.lse);
  return seconds;
}

double time_append(const AttestSubject& subject, const Call& c, int repetitions) {
  Tensors tensors;
  AttestAppend request{};
  request.abi_version = ATTEST_ABI_VERSION;
  request.struct_bytes = sizeof request;
  request.problem = problem_of(c);
  place_cache(c, tensors, request);
  request.new_k = tensors.drawn(c.format, {c.batch, c.num_heads_kv, c.seqlen_q, c.head_dim});
  request.new_v = tensors.drawn(c.format, {c.batch, c.num_heads_kv, c.seqlen_q, c.head_dim});
  const auto entries = static_cast<size_t>(c.batch);
  request.cache_seqlens =
      tensors.of(std::vector(entries, static_cast<int32_t>(c.seqlen_kv / 2)), kDLInt, {c.batch});
  request.new_seqlens =
      tensors.of(std::vector(entries, static_cast<int32_t>(c.seqlen_q)), kDLInt, {c.batch});
  if (c.rope != ATTEST_ROPE_NONE) {
    request.rope_cos_sin = tensors.drawn(ATTEST_F32, {c.seqlen_kv, c.head_dim});
  }
  return timed(subject, c, subject.append, request, repetitions);
}

double time_projection(const AttestSubject& subject, const Call& c, int repetitions) {
  Tensors tensors;
  AttestProjection request{};
  request.abi_version = ATTEST_ABI_VERSION;
  request.struct_bytes = sizeof request;
  request.x = tensors.drawn(c.format, {c.batch, c.seqlen_q, c.head_dim});
  request.w = tensors.drawn(c.format, {c.head_dim, c.seqlen_kv});
  request.y = tensors.poisoned(c.format, {c.batch, c.seqlen_q, c.seqlen_kv});
  const double seconds = timed(subject, c, subject.projection, request, repetitions);
  require_finite(c, request.y);
  return seconds;
}

/// Multiplications and additions that the formula needs.
double flops_of(const Call& c) {
  if (c.operation == ATTEST_PROJECTION)
    return 2.0 * c.batch * c.seqlen_q * c.head_dim * c.seqlen_kv;
  double pairs = double(c.seqlen_q) * c.seqlen_kv;  // of a query and a key that it sees
  if (c.causal) pairs -= double(c.seqlen_q) * (c.seqlen_q - 1) / 2;
  return 4.0 * c.batch * c.num_heads_q * pairs * c.head_dim;
}

/// Bytes of the cache that must move: all of it in decode; the new rows in and out in append.
double bytes_of_cache(const Call& c) {
  const double rows = 2.0 * c.batch * c.num_heads_kv;
  if (c.operation == ATTEST_DECODE) return rows * c.seqlen_kv * c.head_dim * bytes_of(c.cache);
  return rows * c.seqlen_q * c.head_dim * (bytes_of(c.format) + bytes_of(c.cache));
}

/// Without ceilings (all 0) no share is printed.
void time_call(const AttestSubject& subject, const Call& c, const Ceilings& most, int repetitions) {
  const AttestProblem problem = problem_of(c);
  const char* why = subject.declines != nullptr ? subject.declines(c.operation, &problem) : nullptr;
  if (why != nullptr) {
    std::printf("%-58s declined: %s\n", text_of(c).c_str(), why);
    return;
  }
  const bool by_bytes = c.operation == ATTEST_DECODE || c.operation == ATTEST_APPEND;
  const double seconds = c.operation == ATTEST_APPEND ? time_append(subject, c, repetitions)
                         : c.operation == ATTEST_PROJECTION
                             ? time_projection(subject, c, repetitions)
                             : time_attention(subject, c, repetitions);
  const double rate = (by_bytes ? bytes_of_cache(c) : flops_of(c)) / seconds;
  const bool tensor = c.format != ATTEST_F32;
  const double ceiling = by_bytes ? most.copy_bytes : tensor ? most.tensor_flops : most.f32_flops;
  std::printf("%-58s %10.1f us %9.2f %-7s", text_of(c).c_str(), seconds * 1e6,
              rate * (by_bytes ? 1e-9 : 1e-12), by_bytes ? "GB/s" : "TFLOP/s");
  if (most.copy_bytes > 0) {
    std::printf(" %5.1f %% of %s", 100 * rate / ceiling,
                by_bytes ? "copy"
                : tensor ? "mma"
                         : "fma");
  }
  std::puts("");
}

const AttestSubject* loaded(const char* path) {
  void* plugin = dlopen(path, RTLD_NOW);
  if (plugin == nullptr) {
    std::fprintf(stderr, "time_kernels: %s\n", dlerror());
    return nullptr;
  }
  const auto ask = reinterpret_cast<AttestSubjectFunction>(dlsym(plugin, "attest_subject"));
  const AttestSubject* subject = ask != nullptr ? ask(ATTEST_ABI_VERSION) : nullptr;
  if (subject == nullptr) {
    std::fprintf(stderr, "time_kernels: %s is no plugin of ABI version %u\n", path,
                 ATTEST_ABI_VERSION);
  }
  return subject;
}

int run(const char* path, int repetitions, int batch) {
  const AttestSubject* subject = loaded(path);
  if (subject == nullptr) return 2;
  cudaDeviceProp machine{};
  require(cudaGetDeviceProperties(&machine, 0), "cudaGetDeviceProperties");
  const bool emulated = dlsym(RTLD_DEFAULT, "attest_emulator_configure") != nullptr;
  std::printf("%s, compute capability %d.%d; median of %d; %d times the batch\n", machine.name,
              machine.major, machine.minor, repetitions, batch);
  Ceilings most = measured_ceilings(repetitions, emulated);
  if (emulated) {
    most = {};
    std::puts("this is the emulator: no time here means anything");
  } else {
    std::printf(
        "ceilings: copy %.1f GB/s, mma.sync of bf16 %.2f TFLOP/s, fma of f32 %.2f TFLOP/s\n",
        most.copy_bytes * 1e-9, most.tensor_flops * 1e-12, most.f32_flops * 1e-12);
  }
  for (Call call : kUsualCalls) {
    call.batch *= batch;
    time_call(*subject, call, most, repetitions);
  }
  std::puts("timed");
  return 0;
}

/// A whole number of 1 to 10^6 behind `option`, or `otherwise` where it is absent; 0: a bad one.
int option_of(int argc, char** argv, const char* option, int otherwise) {
  for (int i = 2; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], option) != 0) continue;
    char* end = nullptr;
    const long number = std::strtol(argv[i + 1], &end, 10);
    return *end == '\0' && number >= 1 && number <= 1000000 ? static_cast<int>(number) : 0;
  }
  return otherwise;
}

}  // namespace
}  // namespace attest::bundle

int main(int argc, char** argv) {
  using attest::bundle::option_of;
  const int repetitions = option_of(argc, argv, "--repetitions", 20);
  const int batch = option_of(argc, argv, "--batch", 64);
  bool known = argc % 2 == 0;
  for (int i = 2; i < argc; i += 2) {
    known &= std::strcmp(argv[i], "--repetitions") == 0 || std::strcmp(argv[i], "--batch") == 0;
  }
  if (!known || repetitions == 0 || batch == 0) {
    std::fprintf(stderr, "usage: time_kernels PLUGIN [--repetitions N] [--batch N]\n");
    return 2;
  }
  return attest::bundle::run(argv[1], repetitions, batch);
}
