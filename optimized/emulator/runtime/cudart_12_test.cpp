// libcudart.so.12: what a program built with CUDA 12 finds in it that CUDA 13 has no more.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "optimized/emulator/runtime/attest_emulator.h"
#include "optimized/emulator/runtime/device_properties.hpp"

extern "C" {
cudaError_t cudaGetDeviceProperties_v2(attest::emulator::runtime::DevicePropertiesOf12*, int);
cudaError_t cudaThreadSynchronize();
cudaError_t cudaMemAdvise_v2(const void*, std::size_t, cudaMemoryAdvise, cudaMemLocation);
}

namespace {

using attest::emulator::runtime::DevicePropertiesOf12;

TEST(Cudart12, HasItsNameAndVersion) {
  Dl_info where{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&cudaThreadSynchronize), &where), 0);
  EXPECT_NE(std::string(where.dli_fname).find("libcudart.so.12"), std::string::npos);
  int version = 0;
  EXPECT_EQ(cudaRuntimeGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, 12000);
}

TEST(Cudart12, FillsTheRecordOf12) {
  DevicePropertiesOf12 properties{};
  ASSERT_EQ(cudaGetDeviceProperties_v2(&properties, 0), cudaSuccess);
  EXPECT_STREQ(properties.name, "attest emulated device (sm_80)");
  EXPECT_EQ(properties.major, 8);
  EXPECT_EQ(properties.shared_per_block_optin, 163U * 1024U);
  EXPECT_EQ(properties.block_max[2], 64);
  EXPECT_EQ(cudaGetDeviceProperties_v2(&properties, 1), cudaErrorInvalidDevice);
}

TEST(Cudart12, AnswersOldNames) {
  EXPECT_EQ(cudaThreadSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaMemAdvise_v2(nullptr, 0, cudaMemAdviseSetReadMostly, {}), cudaSuccess);
}

TEST(Cudart12, ServesTheWorker) {
  ASSERT_EQ(attest_emulator_configure("limit=1000"), nullptr);
  EXPECT_EQ(attest_emulator_load_error(), nullptr);
  EXPECT_EQ(attest_emulator_finding_count(), 0U);
  EXPECT_STREQ(attest_emulator_finding_kind(7), "");
  EXPECT_STREQ(attest_emulator_finding_text(7), "");
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 1024), cudaSuccess);
  char* bytes = static_cast<char*>(memory);
  EXPECT_EQ(attest_emulator_restrict(bytes + 256, 512), 0);
  EXPECT_EQ(attest_emulator_restrict(bytes + 256, 1024), 1);
  EXPECT_EQ(attest_emulator_restrict(&memory, 8), 1);
  // The host may still copy the guard zones that kernels may not touch.
  char back[1024];
  EXPECT_EQ(cudaMemcpy(back, memory, 1024, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  std::uint64_t launches = 1, instructions = 1;
  attest_emulator_counts(&launches, &instructions);
  EXPECT_EQ(launches, 0U);
  EXPECT_EQ(instructions, 0U);
  EXPECT_EQ(cudaSetDevice(3), cudaErrorInvalidDevice);
  attest_emulator_reset();
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
