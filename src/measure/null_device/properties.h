#pragma once
// What a null device says of itself: cudaDeviceProp as CUDA 11, 12 and 13 lay it out, and single attributes, which runtime
// and driver number alike.

#include <cstddef>
#include <cstdint>
#include <optional>

namespace snug::null_device {

// CUDA 11 and 12; 11 ends earlier (kProperties11Bytes).
struct DeviceProperties12 {
  char name[256];
  unsigned char uuid[16];
  char luid[8];
  unsigned int luid_mask;
  size_t memory_bytes, block_shared_bytes;
  int block_registers, warp;
  size_t pitch;
  int block_threads, block_shape[3], grid_shape[3];
  int clock_khz;
  size_t constant_bytes;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  int overlap, multiprocessors, timeout, integrated, maps_host;
  int compute_mode;
  int textures[40];
  size_t surface_alignment;
  int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc, copy_engines, unified_addressing;
  int memory_clock_khz, memory_bus_bits, l2_bytes, persisting_l2_bytes, threads, stream_priorities, global_l1, local_l1;
  size_t shared_bytes;
  int registers, managed_memory, multi_gpu_board, multi_gpu_board_group, host_atomics;
  int double_ratio;
  int pageable_access, concurrent_managed, preemption, host_pointers, cooperative;
  int cooperative_multi_device;
  size_t block_shared_opt_in_bytes;
  int host_page_tables, direct_managed, blocks, window_bytes;
  size_t block_shared_reserved_bytes;
  int rest[76];
};

struct DeviceProperties13 {
  char name[256];
  unsigned char uuid[16];
  char luid[8];
  unsigned int luid_mask;
  size_t memory_bytes, block_shared_bytes;
  int block_registers, warp;
  size_t pitch;
  int block_threads, block_shape[3], grid_shape[3];
  size_t constant_bytes;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  int multiprocessors, integrated, maps_host;
  int textures[39];
  size_t surface_alignment;
  int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc, copy_engines, unified_addressing;
  int memory_bus_bits, l2_bytes, persisting_l2_bytes, threads, stream_priorities, global_l1, local_l1;
  size_t shared_bytes;
  int registers, managed_memory, multi_gpu_board, multi_gpu_board_group, host_atomics;
  int pageable_access, concurrent_managed, preemption, host_pointers, cooperative;
  size_t block_shared_opt_in_bytes;
  int host_page_tables, direct_managed, blocks, window_bytes;
  size_t block_shared_reserved_bytes;
  int rest[76];
};

// One of cudaDeviceAttr or CUdevice_attribute; 0 for what the device lacks.
int attribute_of(int attribute);
// 16 bytes, another for each device.
void write_uuid(unsigned char* uuid, int device);
bool is_device(int device);
// The bus of "0000:01:00.0", counted from 1 as the devices' are; none if `text` is no such address or null.
std::optional<unsigned int> bus_of(const char* text);

}  // namespace snug::null_device
