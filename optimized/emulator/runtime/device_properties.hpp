// The emulated device as programs see it: the record of CUDA 13, and that of CUDA 12, which lies
// differently in memory and has no header in a CUDA 13 toolkit.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>

namespace attest::emulator::runtime {

/// cudaDeviceProp of CUDA 12: the members up to `cluster_launch` that programs read, in its layout.
struct DevicePropertiesOf12 {
  char name[256];
  cudaUUID_t uuid;
  char luid[8];
  unsigned luid_device_node_mask;
  std::size_t total_global_memory, shared_per_block;
  int registers_per_block, warp;
  std::size_t pitch_max;
  int threads_per_block_max, block_max[3], grid_max[3], clock_rate_khz;
  std::size_t total_constant_memory;
  int major, minor;
  std::size_t texture_alignment, texture_pitch_alignment;
  int device_overlap, multiprocessors, kernel_timeout, integrated, maps_host_memory, compute_mode;
  int texture_limits[26], surface_limits[14];
  std::size_t surface_alignment;
  int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc_driver, async_engines;
  int unified_addressing, memory_clock_rate_khz, memory_bus_bits, l2_bytes, persisting_l2_bytes_max;
  int threads_per_multiprocessor, stream_priorities, global_l1, local_l1;
  std::size_t shared_per_multiprocessor;
  int registers_per_multiprocessor, managed_memory, multi_gpu_board, multi_gpu_board_group;
  int host_native_atomics, single_to_double_ratio, pageable_access, concurrent_managed;
  int compute_preemption, host_pointer_of_registered, cooperative_launch, cooperative_multi_device;
  std::size_t shared_per_block_optin;
  int pageable_uses_host_tables, direct_managed_from_host, blocks_per_multiprocessor;
  int access_policy_window_max;
  std::size_t reserved_shared_per_block;
  int host_register, sparse_arrays, host_register_read_only, timeline_semaphores, memory_pools;
  int gpu_direct_rdma;
  unsigned rdma_flush_options;
  int rdma_ordering;
  unsigned pool_handle_types;
  int deferred_mapping_arrays, ipc_events, cluster_launch, unified_function_pointers;
  int reserved[63];
};

// Measured with offsetof in the headers of CUDA 12.8.
static_assert(sizeof(DevicePropertiesOf12) == 1032);
static_assert(offsetof(DevicePropertiesOf12, multiprocessors) == 388);
static_assert(offsetof(DevicePropertiesOf12, surface_alignment) == 568);
static_assert(offsetof(DevicePropertiesOf12, shared_per_block_optin) == 696);
static_assert(offsetof(DevicePropertiesOf12, cluster_launch) == 772);

cudaDeviceProp device_properties();
DevicePropertiesOf12 device_properties_of_12();

}  // namespace attest::emulator::runtime
