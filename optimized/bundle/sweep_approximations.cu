// Sweeps ex2.approx.ftz.f32 over every float of [-150, -0], and rcp.approx.ftz.f32 over [1, 2) and
// every power of two: largest and mean signed error per binade of the operand, in units of the last
// place. What is exact the device computes in double.
// Usage: sweep_approximations [--stride N]   (each N-th float only; the emulator is slow)
// Exit code 1: somewhere the error is larger than the PTX ISA documents. Knows nothing of kernels.
//
// Error of the measurement: CUDA documents exp2 in double within 1 ulp and the reciprocal is
// rounded correctly, so at most 2^-52 relative: 2^-28 of an ulp of a float.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "optimized/bundle/require.cuh"

namespace {

constexpr int kThreads = 256, kBlocks = 264;  // any; 264: two blocks for each of an H200's 132 SMs
constexpr std::uint32_t kSign = 0x80000000U, kBinade = 1U << 23;
// PTX ISA, ex2 and rcp: ulp away from the correctly rounded result, which is half of one off.
constexpr double kDocumentedEx2 = 2 + 0.5, kDocumentedRcp = 1 + 0.5;
constexpr double kMeasurement = 0x1p-28;

enum class Instruction { ex2, rcp };

/// Of the operands that one thread, one block, or all have seen.
struct Errors {
  std::uint64_t count = 0;
  double sum = 0, largest = 0;  // signed, ulp; `largest` in magnitude
  std::uint32_t place = 0;      // bits of the operand where it is
};

__host__ __device__ void join(Errors& all, const Errors& more) {
  all.count += more.count;
  all.sum += more.sum;
  const bool larger = fabs(more.largest) > fabs(all.largest) ||
                      (fabs(more.largest) == fabs(all.largest) && more.place < all.place);
  if (more.count != 0 && (larger || all.count == more.count)) {
    all.largest = more.largest;
    all.place = more.place;
  }
}

/// What one in the last place of x is worth. Domain: finite. Special: 2^-149 below 2^-125.
__device__ double unit_of(float x) {
  int exponent = 0;
  frexp(x, &exponent);  // x = fraction * 2^exponent, fraction in [1/2, 1)
  return fmax(ldexp(1.0, exponent - 24), 0x1p-149);
}

/// got - exact in ulp: of the float next to exact or of `got`, whichever is more, since at a power
/// of two they differ by a factor of two and the documentation does not say which is meant.
/// Domain: exact > 0. Error: kMeasurement. Special: below the normal numbers .ftz gives 0, which is
/// no error; nor is it one within 2 ulp above them, where the result before it may be subnormal.
__device__ double error_ulp(float got, double exact) {
  if (got == 0 && exact < 0x1p-126 + 2 * 0x1p-149) return 0;
  return (double(got) - exact) / fmax(unit_of(got), unit_of(float(exact)));
}

__device__ double error_at(Instruction instruction, std::uint32_t bits) {
  const float x = __uint_as_float(bits);
  float got = 0;
  if (instruction == Instruction::rcp) {
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(got) : "f"(x));
    return error_ulp(got, 1.0 / double(x));
  }
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(got) : "f"(x));
  return error_ulp(got, exp2(double(x)));
}

/// The operands first, first + stride, ... below end. One Errors per block.
__global__ void sweep(Instruction instruction, std::uint32_t first, std::uint32_t end,
                      std::uint32_t stride, Errors* blocks) {
  __shared__ Errors threads[kThreads];
  Errors mine;
  const std::uint64_t step = std::uint64_t{stride} * kThreads * kBlocks;
  const std::uint64_t lane = blockIdx.x * kThreads + threadIdx.x;
  for (std::uint64_t bits = first + lane * stride; bits < end; bits += step) {
    const double error = error_at(instruction, static_cast<std::uint32_t>(bits));
    join(mine, {1, error, error, static_cast<std::uint32_t>(bits)});
  }
  threads[threadIdx.x] = mine;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) join(threads[threadIdx.x], threads[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) blocks[blockIdx.x] = threads[0];
}

Errors swept(Instruction instruction, std::uint32_t first, std::uint32_t end,
             std::uint32_t stride) {
  static Errors* const device = [] {
    Errors* memory = nullptr;
    require(cudaMalloc(&memory, kBlocks * sizeof(Errors)), "cudaMalloc");
    return memory;
  }();
  sweep<<<kBlocks, kThreads>>>(instruction, first, end, stride, device);
  require(cudaGetLastError(), "launch");
  std::vector<Errors> blocks(kBlocks);
  require(cudaMemcpy(blocks.data(), device, kBlocks * sizeof(Errors), cudaMemcpyDeviceToHost),
          "copying the errors back");
  Errors all;
  for (const Errors& block : blocks) join(all, block);
  return all;
}

float float_of(std::uint32_t bits) {
  float number = 0;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

std::uint32_t bits_of(float number) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}

/// One line of the table; true when the error is larger than documented.
bool print_row(const char* instruction, const char* operands, const Errors& errors,
               double documented) {
  const bool beyond = !(std::fabs(errors.largest) <= documented + kMeasurement);
  std::printf("%-4s %-24s %11llu %+10.4f at %-15a %+10.5f%s\n", instruction, operands,
              static_cast<unsigned long long>(errors.count), errors.largest, float_of(errors.place),
              errors.sum / double(errors.count), beyond ? "  more than documented" : "");
  return beyond;
}

/// The least and the largest operand in magnitude, as bits; `end` is not in it any more.
bool sweep_ex2(std::uint32_t least, std::uint32_t end, std::uint32_t stride, Errors& all) {
  const Errors errors = swept(Instruction::ex2, least, end, stride);
  char operands[64];
  std::snprintf(operands, sizeof operands, "%g .. %g", float_of(end - 1), float_of(least));
  join(all, errors);
  return print_row("ex2", operands, errors, kDocumentedEx2);
}

bool sweep_all(std::uint32_t stride) {
  std::printf("%-4s %-24s %11s %10s    %-15s %10s\n", "", "operands", "values", "largest", "",
              "mean");
  bool beyond = false;
  Errors ex2, rcp;
  // Nearer to 0 than 2^-25 every result rounds to 1: one row for all of them.
  std::uint32_t least = kSign;
  const std::uint32_t last = bits_of(-150.0F);
  for (std::uint32_t end = bits_of(-0x1p-25F); least <= last; end += kBinade) {
    const std::uint32_t stop = end <= last ? end : last + 1;
    beyond |= sweep_ex2(least, stop, stride, ex2);
    least = stop;
  }
  beyond |= print_row("ex2", "all", ex2, kDocumentedEx2);
  rcp = swept(Instruction::rcp, bits_of(1), bits_of(2), stride);
  beyond |= print_row("rcp", "1 .. 2", rcp, kDocumentedRcp);
  const Errors powers = swept(Instruction::rcp, kBinade, 255 * kBinade, kBinade);
  beyond |= print_row("rcp", "2^-126 .. 2^127", powers, kDocumentedRcp);
  return beyond;
}

}  // namespace

int main(int argc, char** argv) {
  unsigned long stride = 1;
  char* end = nullptr;
  if (argc == 3 && std::strcmp(argv[1], "--stride") == 0) stride = std::strtoul(argv[2], &end, 10);
  const bool understood = argc == 1 || (end != nullptr && end != argv[2] && *end == '\0');
  if (!understood || stride < 1 || stride > kBinade) {
    std::fprintf(stderr, "usage: sweep_approximations [--stride N]   (1 <= N <= %u)\n", kBinade);
    return 2;
  }
  std::printf("ulp; %s%s of the floats; documented: ex2 %g, rcp %g\n",
              stride == 1 ? "all" : "one in ", stride == 1 ? "" : argv[2], kDocumentedEx2,
              kDocumentedRcp);
  const bool beyond = sweep_all(static_cast<std::uint32_t>(stride));
  std::puts(beyond ? "sweep: somewhere the error is larger than documented"
                   : "sweep: nowhere is the error larger than documented");
  return beyond ? 1 : 0;
}
