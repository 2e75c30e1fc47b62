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
                kOperations[c.operation], c.batch, c.query_heads, c.queries, c.depth, c.kv_heads,
                c.keys, name_of(c.format), c.causal ? " causal" : "",
                c.page_size > 0 ? " paged" : "", c.cache == ATTEST_E4M3 ? " e4m3" : "",
                c.rope != ATTEST_ROPE_NONE ? " rope" : "");
  return text;
}

AttestProblem problem_of(const Call& c) {
  AttestProblem p{};
  p.abi_version = ATTEST_ABI_VERSION;
  p.struct_bytes = sizeof p;
  p.batch = c.batch, p.query_heads = c.query_heads, p.kv_heads = c.kv_heads;
  p.queries = c.queries, p.keys = c.keys, p.depth = c.depth, p.v_depth = c.depth;
  p.input = c.format, p.output = c.format;
  p.flags = c.causal ? ATTEST_CAUSAL : 0;
  p.window_left = -1, p.window_right = -1;
  p.scale = 1 / std::sqrt(static_cast<float>(c.depth));
  p.capacity = c.keys, p.splits = c.splits;
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
  const int64_t pages = c.page_size > 0 ? (c.keys + c.page_size - 1) / c.page_size : 0;
  const int64_t blocks = pages > 0 ? c.batch * pages : c.batch;
  const int64_t slots = pages > 0 ? c.page_size : c.keys;
  request.k = tensors.drawn(c.cache, {blocks, c.kv_heads, slots, c.depth});
  request.v = tensors.drawn(c.cache, {blocks, c.kv_heads, slots, c.depth});
  if (pages > 0) {
    request.block_table = tensors.of(scattered_pages(blocks), kDLInt, {c.batch, pages});
  }
  if (c.scales == ATTEST_SCALES_HEAD) {
    const std::vector<float> ones(static_cast<size_t>(c.kv_heads), 1.0F);
    request.k_scales = tensors.of(ones, kDLFloat, {c.kv_heads});
    request.v_scales = tensors.of(ones, kDLFloat, {c.kv_heads});
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
  request.q = tensors.drawn(c.format, {c.batch, c.query_heads, c.queries, c.depth});
  place_cache(c, tensors, request);
  request.o = tensors.poisoned(c.format, {c.batch, c.query_heads, c.queries, c.depth});
  request.lse = tensors.poisoned(ATTEST_F32, {c.batch, c.query_heads, c.queries});
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
  request.new_k = tensors.drawn(c.format, {c.batch, c.kv_heads, c.queries, c.depth});
  request.new_v = tensors.drawn(c.format, {c.batch, c.kv_heads, c.queries, c.depth});
  const auto entries = static_cast<size_t>(c.batch);
  request.lengths =
      tensors.of(std::vector(entries, static_cast<int32_t>(c.keys / 2)), kDLInt, {c.batch});
  request.new_lengths =
      tensors.of(std::vector(entries, static_cast<int32_t>(c.queries)), kDLInt, {c.batch});
  if (c.rope != ATTEST_ROPE_NONE) {
    request.rotations = tensors.drawn(ATTEST_F32, {c.keys, c.depth});
  }
  return timed(subject, c, subject.append, request, repetitions);
}

double time_projection(const AttestSubject& subject, const Call& c, int repetitions) {
  Tensors tensors;
  AttestProjection request{};
  request.abi_version = ATTEST_ABI_VERSION;
  request.struct_bytes = sizeof request;
  request.x = tensors.drawn(c.format, {c.batch, c.queries, c.depth});
  request.w = tensors.drawn(c.format, {c.depth, c.keys});
  request.y = tensors.poisoned(c.format, {c.batch, c.queries, c.keys});
  const double seconds = timed(subject, c, subject.projection, request, repetitions);
  require_finite(c, request.y);
  return seconds;
}

/// Multiplications and additions that the formula needs.
double flops_of(const Call& c) {
  if (c.operation == ATTEST_PROJECTION) return 2.0 * c.batch * c.queries * c.depth * c.keys;
  double pairs = double(c.queries) * c.keys;  // of a query and a key that it sees
  if (c.causal) pairs -= double(c.queries) * (c.queries - 1) / 2;
  return 4.0 * c.batch * c.query_heads * pairs * c.depth;
}

/// Bytes of the cache that must move: all of it in decode; the new rows in and out in append.
double bytes_of_cache(const Call& c) {
  const double rows = 2.0 * c.batch * c.kv_heads;
  if (c.operation == ATTEST_DECODE) return rows * c.keys * c.depth * bytes_of(c.cache);
  return rows * c.queries * c.depth * (bytes_of(c.format) + bytes_of(c.cache));
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
