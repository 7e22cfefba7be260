// Launching a kernel from host code: what `kernel<<<blocks, ...>>>(arguments)` becomes (see rewrite.py).
//
// A kernel exists more than once: in the host image, where its body is left out, and in each device image. The host hands
// over the address of an `entry` instance only as a name: the runtime finds the same symbol in the device image and calls
// that one, with the arguments that the host packed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ascsim/abi.h"

// GCC folds functions with equal bodies into one, and host copies of kernels are all empty: entries must stay apart.
#if defined(__GNUC__) && !defined(__clang__)
#define ASCSIM_ENTRY __attribute__((noipa, used))
#else
#define ASCSIM_ENTRY __attribute__((noinline, used))
#endif

namespace ascsim {

// A lambda and the launch's arguments, as host and device both see them. The lambda captures nothing.
template <class Function, class Arguments>
struct Packed {
    Function function;
    Arguments arguments;
};

template <unsigned long long Unit, class Function, class Arguments>
ASCSIM_ENTRY void entry(void* packed)
{
    auto* call = static_cast<Packed<Function, Arguments>*>(packed);
    std::apply(call->function, call->arguments);
}

// What a kernel is called with, in its own types.
template <class Kernel>
struct Call;

template <class... Parameters>
struct Call<void (*)(Parameters...)> {
    using Arguments = std::tuple<Parameters...>;
    static Arguments arguments(Parameters... given) { return Arguments(std::forward<Parameters>(given)...); }
};

template <class... Parameters>
struct Call<void (*)(Parameters...) noexcept> : Call<void (*)(Parameters...)> {
};

// The same for a kernel that is defined once and is no template: nothing of the launch is in its type, so that a device
// image has it without the host code. The source pass writes ASCSIM_LAUNCHED behind such a kernel.
template <unsigned long long Unit, auto Kernel>
ASCSIM_ENTRY void kernel_entry(void* packed)
{
    std::apply(Kernel, *static_cast<typename Call<decltype(Kernel)>::Arguments*>(packed));
}

#define ASCSIM_LAUNCHED(unit, kernel)                                              \
    __attribute__((used)) static void (*const ascsim_entry_of_##kernel)(void*) = \
        &::ascsim::kernel_entry<unit, &kernel>;

// A kernel's name that a macro's parameters make, as text.
#define ASCSIM_TEXT(...) #__VA_ARGS__

#define ASCSIM_LAUNCH_FORM "a launch is kernel<<<blocks, dynamic UB bytes or nullptr, stream>>>(arguments)"

struct LaunchConfig {
    int64_t blocks;
    uint64_t dynamic_ub;
};

// The forms in use: <<<blocks>>>, <<<blocks, bytes of dynamic UB>>>, <<<blocks, nullptr, stream>>>, <<<blocks, bytes,
// stream>>>. A launch runs at once, so the stream has nothing to say.
template <class Blocks>
LaunchConfig launch_config(Blocks blocks)
{
    return {static_cast<int64_t>(blocks), 0};
}

template <class Blocks, class Second>
LaunchConfig launch_config(Blocks blocks, Second second, const void* /* stream */ = nullptr)
{
    if constexpr (std::is_arithmetic_v<Second> || std::is_enum_v<Second>) {
        return {static_cast<int64_t>(blocks), static_cast<uint64_t>(second)};
    } else {
        static_assert(std::is_null_pointer_v<Second> || std::is_pointer_v<Second>, ASCSIM_LAUNCH_FORM);
        return {static_cast<int64_t>(blocks), 0};
    }
}

// Any other number of values, for the message.
template <unsigned Count = 0>
LaunchConfig launch_config()
{
    static_assert(Count != 0, ASCSIM_LAUNCH_FORM);
    return {};
}

template <class Blocks, class Second, class Third, class Fourth, class... More>
LaunchConfig launch_config(Blocks, Second, Third, Fourth, More...)
{
    static_assert(sizeof(Blocks) == 0, ASCSIM_LAUNCH_FORM);
    return {};
}

class Launch {
public:
    Launch(const char* kernel, uint32_t line, LaunchConfig config, const char* file = __builtin_FILE())
        : kernel_(kernel), file_(file), line_(line), config_(config)
    {
    }

    // Inlined always, so that the return address that ascsim_launch sees lies in the user's line. Arguments come by
    // value: a reference to a static const member would need its definition. `Unit` is the number of the translation unit
    // (two files may have kernels of one name in anonymous namespaces); the text says it, so that this header is the same
    // for all units and can be precompiled. A kernel that has a name says so; a call that it does not take is left to the
    // compiler to complain of, in the user's line.
    template <unsigned long long Unit, auto Kernel = nullptr, class Function, class... Arguments>
    __attribute__((always_inline)) void run(Function function, Arguments... arguments) const
    {
        if constexpr (std::is_invocable_v<decltype(Kernel), Arguments&...>) {
            auto packed = Call<decltype(Kernel)>::arguments(arguments...);
            start(reinterpret_cast<void*>(&kernel_entry<Unit, Kernel>), &packed);
        } else {
            using Tuple = std::tuple<Arguments...>;
            Packed<Function, Tuple> packed{function, Tuple(std::move(arguments)...)};
            start(reinterpret_cast<void*>(&entry<Unit, Function, Tuple>), &packed);
        }
    }

private:
    __attribute__((always_inline)) void start(void* entered, void* packed) const
    {
        ascsim_launch(kernel_, file_, line_, config_.blocks, config_.dynamic_ub, entered, packed);
    }

    const char* kernel_;
    const char* file_;
    uint32_t line_;
    LaunchConfig config_;
};

// A kernel's name, out of that of a function: "... [with void (* Kernel)(Arguments ...) = name; ...".
template <size_t Size>
struct KernelName {
    explicit KernelName(const char (&function)[Size])
    {
        const char* begin = std::strstr(std::strstr(function, "Kernel)"), "= ") + 2;
        const size_t length = std::strcspn(begin, ";]");
        __builtin_memcpy(text, begin, length);
        text[length] = 0;
    }
    char text[Size];
};

// What a pointer to a kernel points to in portable programs: a function that launches one block of it.
template <unsigned long long Unit, auto Kernel>
struct Launching;

template <unsigned long long Unit, class... Arguments, void (*Kernel)(Arguments...)>
struct Launching<Unit, Kernel> {
    static void call(Arguments... arguments)
    {
        static const KernelName shown(__PRETTY_FUNCTION__);
        Launch(shown.text, 0, launch_config(1)).run<Unit>([](auto... given) { Kernel(given...); }, arguments...);
    }
};

}  // namespace ascsim
