// Streams, events and graphs. Everything completes before the call returns, which is one of the
// orders a device may choose; only a captured stream keeps its work, to be done when its graph is
// launched.
#include <algorithm>
#include <chrono>

#include "optimized/emulator/runtime/runtime.hpp"
#include "optimized/emulator/runtime/version.hpp"

namespace attest::emulator::runtime {
namespace {

using Clock = std::chrono::steady_clock;

/// The work of a graph, in the order in which it was captured. Streams that joined the capture by
/// waiting for one of its events add to the same list.
struct Graph {
  std::vector<Work> work;
};
using Capture = std::shared_ptr<Graph>;

struct Stream {
  unsigned flags = 0;
  int priority = 0;
  unsigned long long id = 0;
  Capture capture;
};

struct Event {
  unsigned flags = 0;
  bool recorded = false;
  Clock::time_point when;
  Capture capture;  // in which it was recorded
};

struct Handles {
  // The null, legacy and per-thread streams, which exist without being created.
  Stream standing[3];
  std::unordered_map<cudaStream_t, std::unique_ptr<Stream>> streams;
  std::unordered_map<cudaEvent_t, std::unique_ptr<Event>> events;
  std::unordered_map<cudaGraph_t, std::unique_ptr<Graph>> graphs;
  std::unordered_map<cudaGraphExec_t, std::unique_ptr<Graph>> executables;
  unsigned long long next_id = 1;
};
Handles& handles() {
  static Handles& all = *new Handles;
  return all;
}

Stream* find_stream(cudaStream_t stream) {
  const auto number = reinterpret_cast<std::uintptr_t>(stream);
  if (number < 3) return &handles().standing[number];
  const auto found = handles().streams.find(stream);
  return found == handles().streams.end() ? nullptr : found->second.get();
}
Event* find_event(cudaEvent_t event) {
  const auto found = handles().events.find(event);
  return found == handles().events.end() ? nullptr : found->second.get();
}

/// Calls `body` with the stream, or refuses a handle that is none.
template <typename Body>
cudaError_t with_stream(cudaStream_t stream, Body body,
                        const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Runtime&) -> cudaError_t {
        Stream* found = find_stream(stream);
        return found == nullptr ? cudaErrorInvalidResourceHandle : body(*found);
      },
      AfterFault::refuses, function);
}
template <typename Body>
cudaError_t with_event(cudaEvent_t event, Body body, const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Runtime&) -> cudaError_t {
        Event* found = find_event(event);
        return found == nullptr ? cudaErrorInvalidResourceHandle : body(*found);
      },
      AfterFault::refuses, function);
}

/// Puts `object` into `table` under its own address.
template <typename Handle, typename Object>
Handle keep(std::unordered_map<Handle, std::unique_ptr<Object>>& table,
            std::unique_ptr<Object> object) {
  const auto handle = reinterpret_cast<Handle>(object.get());
  table[handle] = std::move(object);
  return handle;
}

cudaError_t leave_capture(const Capture& capture) {
  for (auto& [handle, stream] : handles().streams) {
    if (stream->capture == capture) stream->capture.reset();
  }
  for (auto& [handle, event] : handles().events) {
    if (event->capture == capture) event->capture.reset();
  }
  return cudaSuccess;
}

}  // namespace

bool is_stream(cudaStream_t stream) {
  return find_stream(stream) != nullptr;
}

cudaError_t enqueue(cudaStream_t stream, const Work& work) {
  Stream* found = find_stream(stream);
  if (found == nullptr) return cudaErrorInvalidResourceHandle;
  if (!found->capture) return work();
  found->capture->work.push_back(work);
  return cudaSuccess;
}

}  // namespace attest::emulator::runtime

using namespace attest::emulator::runtime;

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return call([&](Runtime&) {
    if (stream == nullptr) return cudaErrorInvalidValue;
    auto created = std::make_unique<Stream>();
    created->flags = flags;
    created->priority = priority;
    created->id = handles().next_id++;
    *stream = keep(handles().streams, std::move(created));
    return cudaSuccess;
  });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call([&](Runtime&) {
    return handles().streams.erase(stream) == 1 ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return with_stream(stream, [](Stream& found) {
    return found.capture ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
  });
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return cudaStreamSynchronize(stream);
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return with_stream(stream, [&](Stream& found) { return answer(flags, found.flags); });
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return with_stream(stream, [&](Stream& found) { return answer(priority, found.priority); });
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return with_stream(stream, [&](Stream& found) { return answer(id, found.id); });
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return with_stream(stream, [&](Stream&) { return answer(device, 0); });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  return with_stream(stream, [&](Stream& found) {
    Event* awaited = find_event(event);
    if (awaited == nullptr) return cudaErrorInvalidResourceHandle;
    if (awaited->capture) found.capture = awaited->capture;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void*, std::size_t, unsigned) {
  return with_stream(stream, [](Stream&) { return cudaSuccess; });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return with_stream(stream, [&](Stream&) {
    return enqueue(stream, [=] {
      function(data);
      return cudaSuccess;
    });
  });
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned /*flags*/) {
  return with_stream(stream, [&](Stream&) {
    return enqueue(stream, [=] {
      callback(stream, cudaSuccess, data);
      return cudaSuccess;
    });
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call([&](Runtime&) {
    if (event == nullptr) return cudaErrorInvalidValue;
    auto created = std::make_unique<Event>();
    created->flags = flags;
    *event = keep(handles().events, std::move(created));
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call([&](Runtime&) {
    return handles().events.erase(event) == 1 ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned /*flags*/) {
  return with_event(event, [&](Event& found) {
    const Stream* recorder = find_stream(stream);
    if (recorder == nullptr) return cudaErrorInvalidResourceHandle;
    found.capture = recorder->capture;
    found.recorded = true;
    found.when = Clock::now();
    return cudaSuccess;
  });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return with_event(event, [](Event&) { return cudaSuccess; });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return cudaEventQuery(event);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return with_event(start, [&](Event& first) {
    const Event* second = find_event(end);
    if (second == nullptr || !first.recorded || !second->recorded) {
      return cudaErrorInvalidResourceHandle;
    }
    if (((first.flags | second->flags) & cudaEventDisableTiming) != 0) {
      return cudaErrorInvalidResourceHandle;
    }
    *milliseconds = std::chrono::duration<float, std::milli>(second->when - first.when).count();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return with_stream(stream, [&](Stream& found) {
    if (stream == nullptr || stream == cudaStreamLegacy) return cudaErrorStreamCaptureUnsupported;
    if (found.capture) return cudaErrorIllegalState;
    found.capture = std::make_shared<Graph>();
    return cudaSuccess;
  });
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return with_stream(stream, [&](Stream& found) {
    if (!found.capture) return cudaErrorIllegalState;
    const Capture capture = found.capture;
    found.capture.reset();
    *graph = keep(handles().graphs, std::make_unique<Graph>(*capture));
    return leave_capture(capture);
  });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return with_stream(stream, [&](Stream& found) {
    return answer(status,
                  found.capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone);
  });
}
/// CUDA 12's has the first three parameters only, so the others are looked at in 13's.
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** /*edges*/, std::size_t* count) {
  return with_stream(stream, [&](Stream& found) {
    const bool active = found.capture != nullptr;
    if (id != nullptr) *id = active ? reinterpret_cast<std::uintptr_t>(found.capture.get()) : 0;
    constexpr int kLongerSince = 13;
    if (kMajorVersion >= kLongerSince && active && (graph || dependencies || count)) {
      complain("cudaStreamGetCaptureInfo: the nodes of a captured graph are not emulated");
      return cudaErrorNotSupported;
    }
    return answer(status, active ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone);
  });
}
// Hints about caches and scheduling, which change no result.
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID,
                                   const cudaStreamAttrValue*) {
  return with_stream(stream, [](Stream&) { return cudaSuccess; });
}
cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID,
                                   cudaStreamAttrValue* value) {
  return with_stream(stream, [&](Stream&) { return answer(value, cudaStreamAttrValue{}); });
}
cudaError_t cudaStreamCopyAttributes(cudaStream_t target, cudaStream_t source) {
  return with_stream(target, [&](Stream&) {
    return is_stream(source) ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call([&](Runtime&) {
    thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
    std::swap(*mode, current);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long /*flags*/) {
  return call([&](Runtime&) {
    const auto found = handles().graphs.find(graph);
    if (found == handles().graphs.end()) return cudaErrorInvalidValue;
    *executable = keep(handles().executables, std::make_unique<Graph>(*found->second));
    return cudaSuccess;
  });
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(executable, graph, flags);
}
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* executable, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* parameters) {
  if (parameters == nullptr) return call([](Runtime&) { return cudaErrorInvalidValue; });
  parameters->result_out = cudaGraphInstantiateSuccess;
  return cudaGraphInstantiateWithFlags(executable, graph, parameters->flags);
}
/// The executable does from now on what the graph does, which is more than a device allows.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
  return call([&](Runtime&) {
    const auto from = handles().graphs.find(graph);
    const auto to = handles().executables.find(executable);
    if (from == handles().graphs.end() || to == handles().executables.end()) {
      return cudaErrorInvalidValue;
    }
    to->second->work = from->second->work;
    if (result != nullptr) *result = {cudaGraphExecUpdateSuccess, nullptr, nullptr};
    return cudaSuccess;
  });
}
/// How many; the nodes themselves have no handles.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return call([&](Runtime&) {
    const auto found = handles().graphs.find(graph);
    if (found == handles().graphs.end()) return cudaErrorInvalidValue;
    if (nodes != nullptr) {
      complain("cudaGraphGetNodes: the nodes of a captured graph are not emulated");
      return cudaErrorNotSupported;
    }
    return answer(count, found->second->work.size());
  });
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t stream) {
  return with_stream(stream, [](Stream&) { return cudaSuccess; });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return with_stream(stream, [&](Stream&) {
    const auto found = handles().executables.find(executable);
    if (found == handles().executables.end()) return cudaErrorInvalidValue;
    for (const Work& work : found->second->work) {
      const cudaError_t error = enqueue(stream, work);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call([&](Runtime&) {
    return handles().graphs.erase(graph) == 1 ? cudaSuccess : cudaErrorInvalidValue;
  });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return call([&](Runtime&) {
    return handles().executables.erase(executable) == 1 ? cudaSuccess : cudaErrorInvalidValue;
  });
}

}  // extern "C"
