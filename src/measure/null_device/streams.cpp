// Streams, events and graphs. All work is over as soon as it is asked for, so nothing waits; a stream that captures says so.

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "measure/null_device/entry.h"

namespace snug::null_device {

namespace {

constexpr int kNotCapturing = 0, kCapturing = 1;

struct Captures {
  std::mutex mutex;
  std::map<Handle, uint64_t> running;  // stream → its number
  uint64_t next = 1;
};

Captures& captures() {
  static Captures all;
  return all;
}

uint64_t capture_of(Handle stream) {
  const std::lock_guard lock(captures().mutex);
  const auto it = captures().running.find(stream);
  return it == captures().running.end() ? 0 : it->second;
}

int describe_capture(Handle stream, int* status, unsigned long long* number) {
  return guarded([&] {
    const uint64_t capture = capture_of(stream);
    if (number != nullptr) *number = capture;
    return give(status, capture != 0 ? kCapturing : kNotCapturing);
  });
}

int begin_capture(Handle stream) {
  return guarded([&] {
    const std::lock_guard lock(captures().mutex);
    captures().running[stream] = captures().next++;
    return kSuccess;
  });
}

int end_capture(Handle stream, Handle* graph) {
  constexpr int kIllegalState = 401;
  return guarded([&] {
    const std::lock_guard lock(captures().mutex);
    if (captures().running.erase(stream) == 0) return kIllegalState;
    return give(graph, new_handle());
  });
}

}  // namespace

SNUG_ENTRY int cudaStreamCreate(Handle* stream) { return give(stream, new_handle()); }
SNUG_ENTRY int cudaStreamCreateWithFlags(Handle* stream, unsigned int) { return give(stream, new_handle()); }
SNUG_ENTRY int cudaStreamCreateWithPriority(Handle* stream, unsigned int, int) { return give(stream, new_handle()); }
SNUG_ENTRY int cudaStreamDestroy(Handle) { return kSuccess; }
SNUG_ENTRY int cudaStreamQuery(Handle) { return kSuccess; }
SNUG_ENTRY int cudaStreamSynchronize(Handle) { return kSuccess; }
SNUG_ENTRY int cudaStreamWaitEvent(Handle, Handle, unsigned int) { return kSuccess; }
SNUG_ENTRY int cudaStreamGetPriority(Handle, int* priority) { return give(priority, 0); }
SNUG_ENTRY int cudaStreamGetFlags(Handle, unsigned int* flags) { return give(flags, 1U); }
SNUG_ENTRY int cudaStreamGetId(Handle stream, unsigned long long* number) { return give(number, as_number(stream)); }
SNUG_ENTRY int cudaStreamGetDevice(Handle, int* device) { return give(device, 0); }
SNUG_ENTRY int cudaStreamAttachMemAsync(Handle, void*, size_t, unsigned int) { return kSuccess; }
SNUG_ENTRY int cudaStreamSetAttribute(Handle, int, const void*) { return kSuccess; }
SNUG_ENTRY int cudaCtxResetPersistingL2Cache() { return kSuccess; }
SNUG_ENTRY int cudaStreamAddCallback(Handle stream, void (*call)(Handle, int, void*), void* data, unsigned int) {
  call(stream, kSuccess, data);
  return kSuccess;
}
SNUG_ENTRY int cudaLaunchHostFunc(Handle, void (*call)(void*), void* data) {
  call(data);
  return kSuccess;
}

SNUG_ENTRY int cudaStreamBeginCapture(Handle stream, int) { return begin_capture(stream); }
SNUG_ENTRY int cudaStreamEndCapture(Handle stream, Handle* graph) { return end_capture(stream, graph); }
SNUG_ENTRY int cudaStreamIsCapturing(Handle stream, int* status) { return describe_capture(stream, status, nullptr); }
SNUG_ENTRY int cudaStreamGetCaptureInfo_v2(Handle stream, int* status, unsigned long long* number, Handle* graph,
                                           const Handle** nodes, size_t* count) {
  give(graph, nullptr);
  give(nodes, nullptr);
  give(count, 0);
  return describe_capture(stream, status, number);
}
SNUG_ENTRY int cudaStreamGetCaptureInfo_v3(Handle stream, int* status, unsigned long long* number, Handle* graph,
                                           const Handle** nodes, const void** edges, size_t* count) {
  give(edges, nullptr);
  return cudaStreamGetCaptureInfo_v2(stream, status, number, graph, nodes, count);
}
// CUDA 13 has seven arguments here; CUDA 11's three are the first of them.
SNUG_ENTRY int cudaStreamGetCaptureInfo(Handle stream, int* status, unsigned long long* number) {
  return describe_capture(stream, status, number);
}
SNUG_ENTRY int cudaStreamUpdateCaptureDependencies(Handle, Handle*, size_t, unsigned int) { return kSuccess; }
SNUG_ENTRY int cudaThreadExchangeStreamCaptureMode(int* mode) {
  thread_local int current = 0;
  if (mode == nullptr) return kInvalidValue;
  std::swap(*mode, current);
  return kSuccess;
}

SNUG_ENTRY int cudaEventCreate(Handle* event) { return give(event, new_handle()); }
SNUG_ENTRY int cudaEventCreateWithFlags(Handle* event, unsigned int) { return give(event, new_handle()); }
SNUG_ENTRY int cudaEventDestroy(Handle) { return kSuccess; }
SNUG_ENTRY int cudaEventQuery(Handle) { return kSuccess; }
SNUG_ENTRY int cudaEventRecord(Handle, Handle) { return kSuccess; }
SNUG_ENTRY int cudaEventRecordWithFlags(Handle, Handle, unsigned int) { return kSuccess; }
SNUG_ENTRY int cudaEventSynchronize(Handle) { return kSuccess; }
SNUG_ENTRY int cudaEventElapsedTime(float* milliseconds, Handle, Handle) { return give(milliseconds, 1.0F); }
SNUG_ENTRY int cudaEventElapsedTime_v2(float* milliseconds, Handle, Handle) { return give(milliseconds, 1.0F); }

SNUG_ENTRY int cudaGraphCreate(Handle* graph, unsigned int) { return give(graph, new_handle()); }
SNUG_ENTRY int cudaGraphDestroy(Handle) { return kSuccess; }
SNUG_ENTRY int cudaGraphGetNodes(Handle, Handle*, size_t* count) { return give(count, 1); }  // an empty graph is warned of
SNUG_ENTRY int cudaGraphInstantiate(Handle* executable, Handle, unsigned long long) {
  return give(executable, new_handle());
}
SNUG_ENTRY int cudaGraphInstantiateWithFlags(Handle* executable, Handle, unsigned long long) {
  return give(executable, new_handle());
}
SNUG_ENTRY int cudaGraphLaunch(Handle, Handle) { return kSuccess; }
SNUG_ENTRY int cudaGraphUpload(Handle, Handle) { return kSuccess; }
SNUG_ENTRY int cudaGraphExecDestroy(Handle) { return kSuccess; }
SNUG_ENTRY int cudaGraphDebugDotPrint(Handle, const char*, unsigned int) { return kSuccess; }

SNUG_ENTRY int cuStreamCreate(Handle* stream, unsigned int) { return give(stream, new_handle()); }
SNUG_ENTRY int cuStreamCreateWithPriority(Handle* stream, unsigned int, int) { return give(stream, new_handle()); }
SNUG_ENTRY int cuStreamDestroy_v2(Handle) { return kSuccess; }
SNUG_ENTRY int cuStreamSynchronize(Handle) { return kSuccess; }
SNUG_ENTRY int cuStreamQuery(Handle) { return kSuccess; }
SNUG_ENTRY int cuStreamWaitEvent(Handle, Handle, unsigned int) { return kSuccess; }
SNUG_ENTRY int cuStreamGetPriority(Handle, int* priority) { return give(priority, 0); }
SNUG_ENTRY int cuStreamIsCapturing(Handle stream, int* status) { return describe_capture(stream, status, nullptr); }
SNUG_ENTRY int cuStreamGetCtx(Handle, Handle* context) { return give(context, as_pointer(1)); }
SNUG_ENTRY int cuStreamWriteValue32(Handle, uint64_t, uint32_t, unsigned int) { return kSuccess; }  // PyTorch 2.6 and later
SNUG_ENTRY int cuStreamWriteValue32_v2(Handle, uint64_t, uint32_t, unsigned int) { return kSuccess; }
SNUG_ENTRY int cuStreamWaitValue32_v2(Handle, uint64_t, uint32_t, unsigned int) { return kSuccess; }
SNUG_ENTRY int cuEventCreate(Handle* event, unsigned int) { return give(event, new_handle()); }
SNUG_ENTRY int cuEventDestroy_v2(Handle) { return kSuccess; }
SNUG_ENTRY int cuEventRecord(Handle, Handle) { return kSuccess; }
SNUG_ENTRY int cuEventQuery(Handle) { return kSuccess; }
SNUG_ENTRY int cuEventSynchronize(Handle) { return kSuccess; }
SNUG_ENTRY int cuEventElapsedTime(float* milliseconds, Handle, Handle) { return give(milliseconds, 1.0F); }

}  // namespace snug::null_device
