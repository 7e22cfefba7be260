// The acl functions. What depends on device memory is decided by the Python host, which knows the allocations and says
// in full sentences what is wrong; here stand the handles and the error codes.
#include "acl/acl.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "host.hpp"

#define RETURN_ADDRESS reinterpret_cast<uint64_t>(__builtin_return_address(0))
// A function that Python may hear of: its call site is its return address.
#define API extern "C" __attribute__((noinline, visibility("default")))

namespace {

using Clock = std::chrono::steady_clock;

struct Stream {};
struct Context {};
struct Event {
    bool is_recorded = false;
    Clock::time_point time;
};

struct State {
    bool is_initialised = false;
    bool has_device = false;
    aclError device_error = ACL_SUCCESS;
    std::string device_text;
    std::map<void*, std::unique_ptr<Stream>> streams;
    std::map<void*, std::unique_ptr<Context>> contexts;
    std::map<void*, std::unique_ptr<Event>> events;
    std::map<uint64_t, uint64_t> host_blocks;
    void* context = nullptr;
};

// Never destroyed: destructors of the user's static objects may call acl.
State& state()
{
    static auto* the_state = new State;
    return *the_state;
}

thread_local aclError last_error = ACL_SUCCESS;
std::string& last_text()
{
    static thread_local std::string text;
    return text;
}

const char* text_of(aclError code)
{
    switch (code) {
#define ASCSIM_CASE(name, number, text) \
    case number:                        \
        return #name ": " text;
        ASCSIM_ACL_ERRORS(ASCSIM_CASE)
#undef ASCSIM_CASE
    default:
        return "";
    }
}

// Remembers an error that has no sentence of its own.
aclError failed(aclError code)
{
    last_error = code;
    last_text() = text_of(code);
    return code;
}

// Remembers and returns the code of a callback, which has set the text.
aclError done(aclError code)
{
    if (code != ACL_SUCCESS) {
        last_error = code;
    }
    return code;
}

// A wrong call that the device would only answer with a code: also a finding at the call site.
aclError misused(aclError code, const char* function, const char* what, const char* mend, uint64_t pc)
{
    last_error = code;
    last_text() = std::string(function) + ": " + what;
    ascsim_host.misuse(function, what, mend, pc);
    return code;
}

// Bytes from `address` to the end of its aclrtMallocHost block; 0 where it lies in none.
uint64_t host_bytes(const void* address)
{
    auto value = reinterpret_cast<uint64_t>(address);
    const auto& blocks = state().host_blocks;
    auto next = blocks.upper_bound(value);
    if (next == blocks.begin()) {
        return 0;
    }
    --next;
    return value < next->first + next->second ? next->first + next->second - value : 0;
}

template <class Handle>
aclError create(std::map<void*, std::unique_ptr<Handle>>& handles, void** out)
{
    if (out == nullptr) {
        return failed(ACL_ERROR_INVALID_PARAM);
    }
    auto made = std::make_unique<Handle>();
    *out = made.get();
    handles[*out] = std::move(made);
    return ACL_SUCCESS;
}

bool is_stream(aclrtStream stream)
{
    return stream == nullptr || state().streams.count(stream) != 0;
}

constexpr const char* NO_DEVICE = "no device has been set on this thread";
constexpr const char* SET_DEVICE = "Call aclInit and aclrtSetDevice(0) first.";
constexpr const char* NO_STREAM = "the stream does not exist (never created, or already destroyed)";
constexpr const char* NO_EVENT = "the event does not exist (never created, or already destroyed)";
constexpr const char* CREATE_FIRST = "Pass a handle that its create function returned and that is still alive.";

#define CHECK_DEVICE(function)                                                                           \
    do {                                                                                                 \
        if (!state().has_device) {                                                                       \
            return misused(ACL_ERROR_RT_CONTEXT_NULL, function, NO_DEVICE, SET_DEVICE, RETURN_ADDRESS);  \
        }                                                                                                \
    } while (false)

#define CHECK_STREAM(function, stream)                                                                      \
    do {                                                                                                    \
        if (!is_stream(stream)) {                                                                           \
            return misused(ACL_ERROR_RT_STREAM_CONTEXT, function, NO_STREAM, CREATE_FIRST, RETURN_ADDRESS); \
        }                                                                                                   \
    } while (false)

#define CHECK_EVENT(function, event)                                                                       \
    do {                                                                                                   \
        if (state().events.count(event) == 0) {                                                            \
            return misused(ACL_ERROR_RT_INVALID_HANDLE, function, NO_EVENT, CREATE_FIRST, RETURN_ADDRESS); \
        }                                                                                                  \
    } while (false)

aclError synchronised()
{
    if (state().device_error != ACL_SUCCESS) {
        last_error = state().device_error;
        last_text() = state().device_text;
    }
    return state().device_error;
}

aclError allocate(const char* function, void** out, size_t size, uint64_t pc)
{
    if (out == nullptr || size == 0) {
        const char* what = out == nullptr ? "the pointer to the pointer is null" : "the size is 0";
        return misused(ACL_ERROR_INVALID_PARAM, function, what, "Pass the address of a pointer and a size above 0.", pc);
    }
    *out = ascsim_host.allocate(function, size, pc);
    return *out == nullptr ? done(ACL_ERROR_RT_MEMORY_ALLOCATION) : ACL_SUCCESS;
}

constexpr uint32_t SOURCE = 0;
constexpr uint32_t DESTINATION = 1;

struct Direction {
    const char* name;
    uint32_t destination, source;
};

constexpr Direction DIRECTIONS[] = {
    {"ACL_MEMCPY_HOST_TO_HOST", ASCSIM_HOST_MEMORY, ASCSIM_HOST_MEMORY},
    {"ACL_MEMCPY_HOST_TO_DEVICE", ASCSIM_DEVICE_MEMORY, ASCSIM_HOST_MEMORY},
    {"ACL_MEMCPY_DEVICE_TO_HOST", ASCSIM_HOST_MEMORY, ASCSIM_DEVICE_MEMORY},
    {"ACL_MEMCPY_DEVICE_TO_DEVICE", ASCSIM_DEVICE_MEMORY, ASCSIM_DEVICE_MEMORY},
    {"ACL_MEMCPY_DEFAULT", ASCSIM_ANY_MEMORY, ASCSIM_ANY_MEMORY},
    {"ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE", ASCSIM_DEVICE_MEMORY, ASCSIM_HOST_MEMORY},
    {"ACL_MEMCPY_INNER_DEVICE_TO_DEVICE", ASCSIM_DEVICE_MEMORY, ASCSIM_DEVICE_MEMORY},
    {"ACL_MEMCPY_INTER_DEVICE_TO_DEVICE", ASCSIM_DEVICE_MEMORY, ASCSIM_DEVICE_MEMORY},
};

aclError check(const char* function, const char* direction, uint32_t role, const void* address, size_t bytes,
               uint32_t expected, uint64_t pc)
{
    return ascsim_host.check(function, direction, role, address, bytes, expected, host_bytes(address), pc);
}

// `bytes` are what the source (0) and the destination (1) span.
aclError check_copy(const char* function, void* target, const void* source, const size_t (&bytes)[2], aclrtMemcpyKind kind,
                    uint64_t pc)
{
    auto number = static_cast<size_t>(kind);
    if (number >= sizeof(DIRECTIONS) / sizeof(DIRECTIONS[0])) {
        return misused(ACL_ERROR_INVALID_PARAM, function, "the kind of copy does not exist",
                       "Use one of ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST and the like.", pc);
    }
    const Direction& way = DIRECTIONS[number];
    aclError code = check(function, way.name, DESTINATION, target, bytes[DESTINATION], way.destination, pc);
    return code != ACL_SUCCESS ? code : check(function, way.name, SOURCE, source, bytes[SOURCE], way.source, pc);
}

aclError check_capacity(const char* function, size_t capacity, size_t bytes, uint64_t pc)
{
    if (bytes <= capacity) {
        return ACL_SUCCESS;
    }
    std::string what = std::to_string(bytes) + " bytes do not fit the destination's " + std::to_string(capacity);
    return misused(ACL_ERROR_INVALID_PARAM, function, what.c_str(), "Pass the destination's true size as its maximum.", pc);
}

aclError copy(const char* function, void* target, size_t capacity, const void* source, size_t bytes, aclrtMemcpyKind kind,
              uint64_t pc)
{
    aclError code = check_capacity(function, capacity, bytes, pc);
    if (code == ACL_SUCCESS) {
        code = check_copy(function, target, source, {bytes, bytes}, kind, pc);
    }
    if (code == ACL_SUCCESS) {
        std::memmove(target, source, bytes);
    }
    return done(code);
}

aclError copy_rows(const char* function, void* target, size_t target_pitch, const void* source, size_t source_pitch,
                   size_t width, size_t height, aclrtMemcpyKind kind, uint64_t pc)
{
    if (width > target_pitch || width > source_pitch) {
        return misused(ACL_ERROR_INVALID_PARAM, function, "the width of a row is larger than a pitch",
                       "A pitch is the distance in bytes from one row to the next.", pc);
    }
    size_t last = height == 0 ? 0 : height - 1;
    aclError code = check_copy(function, target, source, {last * source_pitch + width, last * target_pitch + width}, kind, pc);
    for (size_t row = 0; row < height && code == ACL_SUCCESS; ++row) {
        std::memmove(static_cast<char*>(target) + row * target_pitch,
                     static_cast<const char*>(source) + row * source_pitch, width);
    }
    return done(code);
}

aclError fill(const char* function, void* target, size_t capacity, int32_t value, size_t bytes, uint64_t pc)
{
    aclError code = check_capacity(function, capacity, bytes, pc);
    if (code == ACL_SUCCESS) {
        code = check(function, "", DESTINATION, target, bytes, ASCSIM_ANY_MEMORY, pc);
    }
    if (code == ACL_SUCCESS) {
        std::memset(target, value, bytes);
    }
    return done(code);
}

}  // namespace

extern "C" void ascsim_set_error(const char* text) { last_text() = text; }

extern "C" void ascsim_set_device_error(int32_t code)
{
    state().device_error = code;
    state().device_text = std::string(text_of(code)) + ": " + last_text();
}

// The interface ---------------------------------------------------------------------------------------------------------

API aclError aclInit(const char* /* configPath */)
{
    ascsim::Lock lock;
    if (state().is_initialised) {
        return failed(ACL_ERROR_REPEAT_INITIALIZE);
    }
    state().is_initialised = true;
    return ACL_SUCCESS;
}

API aclError aclFinalize(void)
{
    ascsim::Lock lock;
    if (!state().is_initialised) {
        return failed(ACL_ERROR_REPEAT_FINALIZE);
    }
    state().is_initialised = false;
    state().has_device = false;
    state().device_error = ACL_SUCCESS;
    return ACL_SUCCESS;
}

API const char* aclGetRecentErrMsg(void) { return last_text().c_str(); }

API const char* aclrtGetSocName(void) { return ascsim_soc_name[0] == 0 ? nullptr : ascsim_soc_name; }

API size_t aclDataTypeSize(aclDataType type)
{
    switch (type) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0:
        return 1;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16:
        return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_COMPLEX32:
        return 4;
    case ACL_DOUBLE:
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_COMPLEX64:
        return 8;
    case ACL_COMPLEX128:
        return 16;
    default:
        return 0;
    }
}

API float aclFloat16ToFloat(aclFloat16 value)
{
    int exponent = (value >> 10) & 0x1f;
    int fraction = value & 0x3ff;
    float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                    : std::ldexp(static_cast<float>(fraction | 0x400), exponent - 25);
    return (value & 0x8000) != 0 ? -magnitude : magnitude;
}

API aclFloat16 aclFloatToFloat16(float value)
{
    uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    float magnitude = std::fabs(value);
    if (!(magnitude < 65504.0f)) {
        return sign | 0x7bff;
    }
    // A unit of the last place: 2^-24 below the normal numbers, 2^(e-10) above.
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    int last_place = magnitude < 0x1p-14f ? -24 : exponent - 11;
    auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, -last_place)));
    // A fraction that rounds up to 2048 units carries into the exponent by itself.
    uint32_t bits = last_place == -24 ? units : (static_cast<uint32_t>(last_place + 24) << 10) + units;
    return static_cast<aclFloat16>(sign | std::min<uint32_t>(bits, 0x7bff));
}

// Devices and contexts

API aclError aclrtSetDevice(int32_t device)
{
    ascsim::Lock lock;
    if (device != 0) {
        return misused(ACL_ERROR_RT_INVALID_DEVICEID, "aclrtSetDevice", "there is only device 0",
                       "The simulator has one device; use number 0.", RETURN_ADDRESS);
    }
    state().has_device = true;
    return ACL_SUCCESS;
}

API aclError aclrtResetDevice(int32_t device)
{
    ascsim::Lock lock;
    if (device != 0) {
        return failed(ACL_ERROR_RT_INVALID_DEVICEID);
    }
    state().has_device = false;
    state().device_error = ACL_SUCCESS;
    return ACL_SUCCESS;
}

API aclError aclrtResetDeviceForce(int32_t device) { return aclrtResetDevice(device); }

API aclError aclrtGetDevice(int32_t* device)
{
    if (device == nullptr) {
        return failed(ACL_ERROR_INVALID_PARAM);
    }
    if (!state().has_device) {
        return failed(ACL_ERROR_RT_CONTEXT_NULL);
    }
    *device = 0;
    return ACL_SUCCESS;
}

API aclError aclrtGetDeviceCount(uint32_t* count)
{
    if (count == nullptr) {
        return failed(ACL_ERROR_INVALID_PARAM);
    }
    *count = 1;
    return ACL_SUCCESS;
}

API aclError aclrtGetDeviceInfo(uint32_t device, aclrtDevAttr attribute, int64_t* value)
{
    ascsim::Lock lock;
    if (device != 0) {
        return failed(ACL_ERROR_RT_INVALID_DEVICEID);
    }
    int64_t known = value == nullptr ? -1 : ascsim_host.device_info(static_cast<uint32_t>(attribute));
    if (known < 0) {
        return failed(ACL_ERROR_INVALID_PARAM);
    }
    *value = known;
    return ACL_SUCCESS;
}

API aclError aclrtGetRunMode(aclrtRunMode* mode)
{
    if (mode == nullptr) {
        return failed(ACL_ERROR_INVALID_PARAM);
    }
    *mode = ACL_HOST;
    return ACL_SUCCESS;
}

API aclError aclrtGetVersion(int32_t* major, int32_t* minor, int32_t* patch)
{
    if (major == nullptr || minor == nullptr || patch == nullptr) {
        return failed(ACL_ERROR_INVALID_PARAM);
    }
    *major = 1;
    *minor = 0;
    *patch = 0;
    return ACL_SUCCESS;
}

API aclError aclrtCreateContext(aclrtContext* context, int32_t device)
{
    ascsim::Lock lock;
    if (device != 0) {
        return failed(ACL_ERROR_RT_INVALID_DEVICEID);
    }
    aclError code = create(state().contexts, context);
    if (code == ACL_SUCCESS) {
        state().context = *context;
        state().has_device = true;
    }
    return code;
}

API aclError aclrtDestroyContext(aclrtContext context)
{
    ascsim::Lock lock;
    if (state().contexts.erase(context) == 0) {
        return misused(ACL_ERROR_RT_INVALID_HANDLE, "aclrtDestroyContext", "the context does not exist", CREATE_FIRST,
                       RETURN_ADDRESS);
    }
    state().context = state().context == context ? nullptr : state().context;
    return ACL_SUCCESS;
}

API aclError aclrtSetCurrentContext(aclrtContext context)
{
    ascsim::Lock lock;
    if (state().contexts.count(context) == 0) {
        return misused(ACL_ERROR_RT_INVALID_HANDLE, "aclrtSetCurrentContext", "the context does not exist", CREATE_FIRST,
                       RETURN_ADDRESS);
    }
    state().context = context;
    state().has_device = true;
    return ACL_SUCCESS;
}

API aclError aclrtGetCurrentContext(aclrtContext* context)
{
    ascsim::Lock lock;
    if (context == nullptr) {
        return failed(ACL_ERROR_INVALID_PARAM);
    }
    if (!state().has_device) {
        return failed(ACL_ERROR_RT_CONTEXT_NULL);
    }
    if (state().context == nullptr) {
        create(state().contexts, &state().context);  // the device's own
    }
    *context = state().context;
    return ACL_SUCCESS;
}

API aclError aclrtSynchronizeDevice(void)
{
    ascsim::Lock lock;
    return synchronised();
}

API aclError aclrtSynchronizeDeviceWithTimeout(int32_t /* timeout */)
{
    ascsim::Lock lock;
    return synchronised();
}

API aclError aclrtPeekAtLastError(aclrtLastErrLevel /* level */) { return last_error; }

API aclError aclrtGetLastError(aclrtLastErrLevel /* level */)
{
    aclError code = last_error;
    last_error = ACL_SUCCESS;
    return code;
}

// Streams and events

API aclError aclrtCreateStream(aclrtStream* stream)
{
    ascsim::Lock lock;
    CHECK_DEVICE("aclrtCreateStream");
    return create(state().streams, stream);
}

API aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t /* priority */, uint32_t /* flag */)
{
    ascsim::Lock lock;
    CHECK_DEVICE("aclrtCreateStreamWithConfig");
    return create(state().streams, stream);
}

API aclError aclrtDestroyStream(aclrtStream stream)
{
    ascsim::Lock lock;
    if (state().streams.erase(stream) == 0) {
        return misused(ACL_ERROR_RT_STREAM_CONTEXT, "aclrtDestroyStream", NO_STREAM, CREATE_FIRST, RETURN_ADDRESS);
    }
    return ACL_SUCCESS;
}

API aclError aclrtDestroyStreamForce(aclrtStream stream)
{
    ascsim::Lock lock;
    if (state().streams.erase(stream) == 0) {
        return misused(ACL_ERROR_RT_STREAM_CONTEXT, "aclrtDestroyStreamForce", NO_STREAM, CREATE_FIRST, RETURN_ADDRESS);
    }
    return ACL_SUCCESS;
}

API aclError aclrtSynchronizeStream(aclrtStream stream)
{
    ascsim::Lock lock;
    CHECK_STREAM("aclrtSynchronizeStream", stream);
    return synchronised();
}

API aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t /* timeout */)
{
    ascsim::Lock lock;
    CHECK_STREAM("aclrtSynchronizeStreamWithTimeout", stream);
    return synchronised();
}

API aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status)
{
    ascsim::Lock lock;
    CHECK_STREAM("aclrtStreamQuery", stream);
    if (status == nullptr) {
        return failed(ACL_ERROR_INVALID_PARAM);
    }
    *status = ACL_STREAM_STATUS_COMPLETE;
    return ACL_SUCCESS;
}

API aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)
{
    ascsim::Lock lock;
    CHECK_STREAM("aclrtStreamWaitEvent", stream);
    CHECK_EVENT("aclrtStreamWaitEvent", event);
    return ACL_SUCCESS;
}

API aclError aclrtCreateEvent(aclrtEvent* event)
{
    ascsim::Lock lock;
    return create(state().events, event);
}

API aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t /* flag */)
{
    ascsim::Lock lock;
    return create(state().events, event);
}

API aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t /* flag */)
{
    ascsim::Lock lock;
    return create(state().events, event);
}

API aclError aclrtDestroyEvent(aclrtEvent event)
{
    ascsim::Lock lock;
    CHECK_EVENT("aclrtDestroyEvent", event);
    state().events.erase(event);
    return ACL_SUCCESS;
}

API aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream)
{
    ascsim::Lock lock;
    CHECK_EVENT("aclrtRecordEvent", event);
    CHECK_STREAM("aclrtRecordEvent", stream);
    state().events[event]->is_recorded = true;
    state().events[event]->time = Clock::now();
    return ACL_SUCCESS;
}

API aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream)
{
    ascsim::Lock lock;
    CHECK_EVENT("aclrtResetEvent", event);
    CHECK_STREAM("aclrtResetEvent", stream);
    state().events[event]->is_recorded = false;
    return ACL_SUCCESS;
}

API aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status)
{
    ascsim::Lock lock;
    CHECK_EVENT("aclrtQueryEvent", event);
    if (status == nullptr) {
        return failed(ACL_ERROR_INVALID_PARAM);
    }
    *status = ACL_EVENT_STATUS_COMPLETE;
    return ACL_SUCCESS;
}

API aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status)
{
    ascsim::Lock lock;
    CHECK_EVENT("aclrtQueryEventStatus", event);
    if (status == nullptr) {
        return failed(ACL_ERROR_INVALID_PARAM);
    }
    *status = state().events[event]->is_recorded ? ACL_EVENT_RECORDED_STATUS_COMPLETE
                                                 : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return ACL_SUCCESS;
}

API aclError aclrtSynchronizeEvent(aclrtEvent event)
{
    ascsim::Lock lock;
    CHECK_EVENT("aclrtSynchronizeEvent", event);
    return synchronised();
}

API aclError aclrtEventElapsedTime(float* milliseconds, aclrtEvent start, aclrtEvent end)
{
    ascsim::Lock lock;
    CHECK_EVENT("aclrtEventElapsedTime", start);
    CHECK_EVENT("aclrtEventElapsedTime", end);
    const Event& first = *state().events[start];
    const Event& second = *state().events[end];
    if (milliseconds == nullptr || !first.is_recorded || !second.is_recorded) {
        return failed(milliseconds == nullptr ? ACL_ERROR_INVALID_PARAM : ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
    }
    *milliseconds = std::chrono::duration<float, std::milli>(second.time - first.time).count();
    return ACL_SUCCESS;
}

// Memory

API aclError aclrtMalloc(void** out, size_t size, aclrtMemMallocPolicy /* policy */)
{
    ascsim::Lock lock;
    CHECK_DEVICE("aclrtMalloc");
    return allocate("aclrtMalloc", out, size, RETURN_ADDRESS);
}

API aclError aclrtMallocAlign32(void** out, size_t size, aclrtMemMallocPolicy /* policy */)
{
    ascsim::Lock lock;
    CHECK_DEVICE("aclrtMallocAlign32");
    return allocate("aclrtMallocAlign32", out, size, RETURN_ADDRESS);
}

API aclError aclrtMallocCached(void** out, size_t size, aclrtMemMallocPolicy /* policy */)
{
    ascsim::Lock lock;
    CHECK_DEVICE("aclrtMallocCached");
    return allocate("aclrtMallocCached", out, size, RETURN_ADDRESS);
}

API aclError aclrtMemFlush(void* /* address */, size_t /* size */) { return ACL_SUCCESS; }
API aclError aclrtMemInvalidate(void* /* address */, size_t /* size */) { return ACL_SUCCESS; }

API aclError aclrtFree(void* address)
{
    ascsim::Lock lock;
    return done(ascsim_host.release("aclrtFree", address, host_bytes(address), RETURN_ADDRESS));
}

API aclError aclrtMallocHost(void** out, size_t size)
{
    ascsim::Lock lock;
    if (out == nullptr || size == 0) {
        const char* what = out == nullptr ? "the pointer to the pointer is null" : "the size is 0";
        return misused(ACL_ERROR_INVALID_PARAM, "aclrtMallocHost", what,
                       "Pass the address of a pointer and a size above 0.", RETURN_ADDRESS);
    }
    // Zeros, as fresh pinned pages are; a page boundary, as pinned memory has.
    size_t whole = (size + 4095) / 4096 * 4096;
    *out = whole < size ? nullptr : std::aligned_alloc(4096, whole);
    if (*out == nullptr) {
        return failed(ACL_ERROR_BAD_ALLOC);
    }
    std::memset(*out, 0, whole);
    state().host_blocks[reinterpret_cast<uint64_t>(*out)] = size;
    return ACL_SUCCESS;
}

API aclError aclrtFreeHost(void* address)
{
    ascsim::Lock lock;
    if (state().host_blocks.erase(reinterpret_cast<uint64_t>(address)) == 0) {
        return misused(ACL_ERROR_INVALID_PARAM, "aclrtFreeHost", "aclrtMallocHost did not return this pointer, or it is freed",
                       "Free host memory once, with the pointer that aclrtMallocHost gave; device memory with aclrtFree.",
                       RETURN_ADDRESS);
    }
    std::free(address);
    return ACL_SUCCESS;
}

API aclError aclrtMemset(void* target, size_t capacity, int32_t value, size_t bytes)
{
    ascsim::Lock lock;
    return fill("aclrtMemset", target, capacity, value, bytes, RETURN_ADDRESS);
}

API aclError aclrtMemsetAsync(void* target, size_t capacity, int32_t value, size_t bytes, aclrtStream stream)
{
    ascsim::Lock lock;
    CHECK_STREAM("aclrtMemsetAsync", stream);
    return fill("aclrtMemsetAsync", target, capacity, value, bytes, RETURN_ADDRESS);
}

API aclError aclrtMemcpy(void* target, size_t capacity, const void* source, size_t bytes, aclrtMemcpyKind kind)
{
    ascsim::Lock lock;
    return copy("aclrtMemcpy", target, capacity, source, bytes, kind, RETURN_ADDRESS);
}

API aclError aclrtMemcpyAsync(void* target, size_t capacity, const void* source, size_t bytes, aclrtMemcpyKind kind,
                              aclrtStream stream)
{
    ascsim::Lock lock;
    CHECK_STREAM("aclrtMemcpyAsync", stream);
    return copy("aclrtMemcpyAsync", target, capacity, source, bytes, kind, RETURN_ADDRESS);
}

API aclError aclrtMemcpy2d(void* target, size_t target_pitch, const void* source, size_t source_pitch, size_t width,
                           size_t height, aclrtMemcpyKind kind)
{
    ascsim::Lock lock;
    return copy_rows("aclrtMemcpy2d", target, target_pitch, source, source_pitch, width, height, kind, RETURN_ADDRESS);
}

API aclError aclrtMemcpy2dAsync(void* target, size_t target_pitch, const void* source, size_t source_pitch, size_t width,
                                size_t height, aclrtMemcpyKind kind, aclrtStream stream)
{
    ascsim::Lock lock;
    CHECK_STREAM("aclrtMemcpy2dAsync", stream);
    return copy_rows("aclrtMemcpy2dAsync", target, target_pitch, source, source_pitch, width, height, kind, RETURN_ADDRESS);
}

API aclError aclrtCmoAsync(void* /* source */, size_t /* size */, aclrtCmoType /* type */, aclrtStream stream)
{
    ascsim::Lock lock;
    CHECK_STREAM("aclrtCmoAsync", stream);
    return ACL_SUCCESS;  // there are no caches
}

API aclError aclrtGetMemInfo(aclrtMemAttr /* attribute */, size_t* free, size_t* total)
{
    ascsim::Lock lock;
    if (free == nullptr || total == nullptr) {
        return failed(ACL_ERROR_INVALID_PARAM);
    }
    *total = ascsim_core.capacity[0];
    *free = static_cast<size_t>(ascsim_host.device_info(0));
    return ACL_SUCCESS;
}
