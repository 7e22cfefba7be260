// Kernels that a caller without a host program calls by name. The source pass writes ASCSIM_EXPORT_KERNEL behind each
// kernel (BuildOptions.export_kernels); exports.py reads the descriptions that it leaves in the device image.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "ascsim/words.hpp"

namespace ascsim {

// Call a kernel with pointers to its arguments.
template <class... Parameters, std::size_t... Index>
void call_kernel(void (*kernel)(Parameters...), void** arguments, std::index_sequence<Index...>)
{
    kernel(*static_cast<std::remove_cv_t<std::remove_reference_t<Parameters>>*>(arguments[Index])...);
}

template <class... Parameters>
void call_kernel(void (*kernel)(Parameters...), void** arguments)
{
    call_kernel(kernel, arguments, std::index_sequence_for<Parameters...>{});
}

namespace parameter_kind { enum : uint8_t { pointer = 1, number = 2, boolean = 3, object = 4 }; }

// What a caller must know of a parameter. A pointer is told by what it points to: an element type (its number, or 0 for
// another type) and a size (0 for void and for types that are only declared).
struct ParameterDescription {
    uint8_t kind, dtype;
    uint16_t spare;
    uint32_t size;
};

template <class Type, class = void>
inline constexpr uint32_t size_of = 0;
template <class Type>
inline constexpr uint32_t size_of<Type, std::void_t<decltype(sizeof(Type)), std::enable_if_t<std::is_object_v<Type>>>> =
    sizeof(Type);

template <class Type>
constexpr ParameterDescription describe_parameter()
{
    using Plain = std::remove_cv_t<std::remove_reference_t<Type>>;
    if constexpr (std::is_pointer_v<Plain>) {
        using Pointed = std::remove_cv_t<std::remove_pointer_t<Plain>>;
        return {parameter_kind::pointer, dtype_code<Pointed>, 0, size_of<Pointed>};
    } else if constexpr (std::is_enum_v<Plain>) {
        return describe_parameter<std::underlying_type_t<Plain>>();
    } else if constexpr (std::is_same_v<Plain, bool>) {
        return {parameter_kind::boolean, 0, 0, sizeof(Plain)};
    } else if constexpr (dtype_code<Plain> != 0) {
        return {parameter_kind::number, dtype_code<Plain>, 0, sizeof(Plain)};
    } else {
        return {parameter_kind::object, 0, 0, sizeof(Plain)};
    }
}

// One record of the section `.ascsim.kernels`, which linkers concatenate; `size` is the record's own.
template <std::size_t Count, std::size_t Length>
struct alignas(8) KernelDescription {
    uint32_t size;
    uint16_t count, name_length;
    ParameterDescription parameters[Count + 1];
    char name[Length];
};

template <std::size_t Length, class... Parameters>
constexpr auto describe_kernel(const char (&name)[Length], void (*)(Parameters...))
{
    using Description = KernelDescription<sizeof...(Parameters), Length>;
    Description made{sizeof(Description), sizeof...(Parameters), Length - 1, {describe_parameter<Parameters>()..., {}}, {}};
    for (std::size_t i = 0; i < Length; ++i) {
        made.name[i] = name[i];
    }
    return made;
}

}  // namespace ascsim

// `inline`, because a kernel may stand in a header of several sources.
#define ASCSIM_EXPORT_KERNEL(name, kernel)                                                                              \
    extern "C" inline __attribute__((used)) void ascsim_kernel_##name(void** arguments)                                 \
    {                                                                                                                   \
        ::ascsim::call_kernel(&kernel, arguments);                                                                      \
    }                                                                                                                   \
    __attribute__((used, aligned(8), section(".ascsim.kernels"))) static constexpr auto ascsim_description_##name =     \
        ::ascsim::describe_kernel(#name, &kernel);
