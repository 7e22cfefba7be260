// Types that the vendor's compiler has built in: half, bfloat16_t, the storage of the 8- and 4-bit element types, and
// registers. The vector registers of each element type are declared in ascsim/words.hpp.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <type_traits>

namespace ascsim {

// The bits of a 16-bit float of this many exponent and fraction bits nearest to `value`, ties to even.
template <int Exponent, int Fraction>
constexpr uint16_t narrow(float value)
{
    const uint32_t bits = __builtin_bit_cast(uint32_t, value);
    const uint16_t sign = static_cast<uint16_t>(bits >> 31 << (Exponent + Fraction));
    const uint32_t magnitude = bits & 0x7fffffff;
    constexpr uint32_t infinity = ((1u << Exponent) - 1) << Fraction;
    if (magnitude > 0x7f800000) {  // a NaN keeps the top of its payload and is quiet
        const uint32_t payload = (magnitude & 0x7fffff) >> (23 - Fraction);
        return static_cast<uint16_t>(sign | infinity | 1u << (Fraction - 1) | payload);
    }
    constexpr int bias = (1 << (Exponent - 1)) - 1;
    const int exponent = static_cast<int>(magnitude >> 23) - 127 + bias;
    if (exponent >= (1 << Exponent) - 1) {
        return static_cast<uint16_t>(sign | infinity);
    }
    uint32_t significand = magnitude & 0x7fffff;
    int drop = 23 - Fraction;
    uint32_t kept = static_cast<uint32_t>(exponent) << Fraction;
    if (Exponent < 8 && exponent <= 0) {  // subnormal there: the leading one becomes visible
        significand |= 0x800000;
        drop += 1 - exponent;
        kept = 0;
        if (drop > 24) {
            return sign;
        }
    }
    kept += significand >> drop;
    const uint32_t rest = significand & ((1u << drop) - 1), half_way = 1u << (drop - 1);
    if (rest > half_way || (rest == half_way && (kept & 1))) {
        ++kept;  // may carry into the exponent, up to infinity
    }
    return static_cast<uint16_t>(sign | kept);
}

// Its value; exact.
template <int Exponent, int Fraction>
constexpr float widen(uint16_t bits)
{
    const uint32_t sign = static_cast<uint32_t>(bits >> (Exponent + Fraction)) << 31;
    uint32_t exponent = (bits >> Fraction) & ((1u << Exponent) - 1);
    uint32_t fraction = bits & ((1u << Fraction) - 1);
    constexpr int bias = (1 << (Exponent - 1)) - 1;
    if (exponent == (1u << Exponent) - 1) {
        return __builtin_bit_cast(float, sign | 0x7f800000 | fraction << (23 - Fraction));
    }
    if (exponent == 0 && Exponent < 8) {
        if (fraction == 0) {
            return __builtin_bit_cast(float, sign);
        }
        int shift = 0;
        while (!(fraction >> Fraction)) {
            fraction <<= 1;
            ++shift;
        }
        fraction &= (1u << Fraction) - 1;
        exponent = static_cast<uint32_t>(1 - shift);  // modulo 2^32, put right by the bias below
    }
    const uint32_t biased = Exponent < 8 ? exponent + 127 - bias : exponent;
    return __builtin_bit_cast(float, sign | biased << 23 | fraction << (23 - Fraction));
}

// A 16-bit float where the compiler has none of that format. Between two of them arithmetic rounds once to the same type;
// with any other number the usual conversions apply, as from float.
template <int Exponent, int Fraction>
struct Float16 {
    uint16_t bits;

    Float16() = default;
    template <class Number, std::enable_if_t<std::is_arithmetic_v<Number> || std::is_enum_v<Number>, int> = 0>
    constexpr Float16(Number value) : bits(narrow<Exponent, Fraction>(static_cast<float>(value)))
    {
    }
    constexpr operator float() const { return widen<Exponent, Fraction>(bits); }

    constexpr Float16 operator-() const
    {
        Float16 negated(*this);
        negated.bits = static_cast<uint16_t>(bits ^ 0x8000);
        return negated;
    }
    constexpr Float16 operator+() const { return *this; }
    template <class Number>
    constexpr Float16& operator+=(Number other) { return *this = Float16(static_cast<float>(*this) + other); }
    template <class Number>
    constexpr Float16& operator-=(Number other) { return *this = Float16(static_cast<float>(*this) - other); }
    template <class Number>
    constexpr Float16& operator*=(Number other) { return *this = Float16(static_cast<float>(*this) * other); }
    template <class Number>
    constexpr Float16& operator/=(Number other) { return *this = Float16(static_cast<float>(*this) / other); }
    constexpr Float16& operator++() { return *this += 1.0f; }
    constexpr Float16& operator--() { return *this -= 1.0f; }
};

// Deduced exactly, so that a bfloat16_t with a float is the built-in operation on floats.
template <int E, int F>
constexpr Float16<E, F> operator+(Float16<E, F> a, Float16<E, F> b) { return float(a) + float(b); }
template <int E, int F>
constexpr Float16<E, F> operator-(Float16<E, F> a, Float16<E, F> b) { return float(a) - float(b); }
template <int E, int F>
constexpr Float16<E, F> operator*(Float16<E, F> a, Float16<E, F> b) { return float(a) * float(b); }
template <int E, int F>
constexpr Float16<E, F> operator/(Float16<E, F> a, Float16<E, F> b) { return float(a) / float(b); }

// Bits without arithmetic; `Tag` keeps the types apart.
template <class Tag>
struct Stored8 {
    uint8_t bits;
    friend constexpr bool operator==(Stored8 a, Stored8 b) { return a.bits == b.bits; }
    friend constexpr bool operator!=(Stored8 a, Stored8 b) { return a.bits != b.bits; }
};

// What std::numeric_limits says of such a type.
template <class Type, int Exponent, int Fraction>
struct Limits {
    static constexpr Type value(uint16_t bits) { return __builtin_bit_cast(Type, bits); }
    static constexpr uint16_t infinity_bits = ((1u << Exponent) - 1) << Fraction;
    static constexpr int bias = (1 << (Exponent - 1)) - 1;

    static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false;
    static constexpr bool has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = true, has_denorm_loss = false;
    static constexpr bool is_iec559 = true, is_bounded = true, is_modulo = false, traps = false, tinyness_before = false;
    static constexpr std::float_denorm_style has_denorm = std::denorm_present;
    static constexpr std::float_round_style round_style = std::round_to_nearest;
    static constexpr int radix = 2, digits = Fraction + 1, digits10 = Fraction * 301 / 1000;
    static constexpr int max_digits10 = 2 + (Fraction + 1) * 301 / 1000;
    static constexpr int max_exponent = bias + 1, min_exponent = 2 - bias;
    static constexpr int max_exponent10 = bias * 301 / 1000, min_exponent10 = -((bias - 1) * 301 / 1000);
    static constexpr Type min() { return value(1u << Fraction); }
    static constexpr Type max() { return value(infinity_bits - 1); }
    static constexpr Type lowest() { return value(0x8000 | (infinity_bits - 1)); }
    static constexpr Type epsilon() { return value(static_cast<uint16_t>((bias - Fraction) << Fraction)); }
    static constexpr Type round_error() { return value(static_cast<uint16_t>((bias - 1) << Fraction)); }
    static constexpr Type infinity() { return value(infinity_bits); }
    static constexpr Type quiet_NaN() { return value(infinity_bits | 1u << (Fraction - 1)); }
    static constexpr Type signaling_NaN() { return value(infinity_bits | 1u << (Fraction - 2)); }
    static constexpr Type denorm_min() { return value(1); }
};

}  // namespace ascsim

#ifdef __FLT16_MANT_DIG__
typedef _Float16 half;
#else
typedef ascsim::Float16<5, 10> half;
#endif
#define __fp16 half  // what the vendor's compiler calls it too; a keyword of Clang's, of another type
typedef ascsim::Float16<8, 7> bfloat16_t;

#ifdef __CPU_SIM
#include "ascsim/narrow.hpp"
#else
typedef ascsim::Stored8<struct ascsim_hifloat8> hifloat8_t;
typedef ascsim::Stored8<struct ascsim_e4m3fn> fp8_e4m3fn_t;
typedef ascsim::Stored8<struct ascsim_e5m2> fp8_e5m2_t;
typedef ascsim::Stored8<struct ascsim_e8m0> fp8_e8m0_t;
typedef ascsim::Stored8<struct ascsim_e2m1x2> fp4x2_e2m1_t;  // two elements a byte
typedef ascsim::Stored8<struct ascsim_e1m2x2> fp4x2_e1m2_t;
#endif
typedef ascsim::Stored8<struct ascsim_int4x2> int4x2_t;
typedef int4x2_t int4b_t;
using int4b_t = int4x2_t;  // its name in the C API
typedef fp8_e4m3fn_t float8_e4m3_t;
typedef fp8_e5m2_t float8_e5m2_t;
typedef fp8_e8m0_t float8_e8m0_t;
typedef fp4x2_e2m1_t float4_e2m1x2_t;
typedef fp4x2_e1m2_t float4_e1m2x2_t;

namespace std {

#ifndef __STDCPP_FLOAT16_T__  // newer libraries have these where half is std::float16_t
template <>
struct numeric_limits<half> : ascsim::Limits<half, 5, 10> {};
#endif
template <>
struct numeric_limits<bfloat16_t> : ascsim::Limits<bfloat16_t, 8, 7> {};

}  // namespace std

// Written out as the float they are.
#ifndef __STDCPP_FLOAT16_T__
template <class Character, class Traits>
std::basic_ostream<Character, Traits>& operator<<(std::basic_ostream<Character, Traits>& stream, half value)
{
    return stream << static_cast<float>(value);
}
#endif

// A vector register. Registers of two element types convert explicitly: the bytes stay.
namespace ascsim {
struct alignas(32) Lanes {
    uint8_t lanes[256];
};
}  // namespace ascsim
#define ASCSIM_VECTOR_REGISTER(Name)                                          \
    struct Name : ascsim::Lanes {                                             \
        Name() = default;                                                     \
        explicit Name(const ascsim::Lanes& other) : ascsim::Lanes(other) {}   \
    };

// A mask register: one byte, 0 or 1, for each byte of a vector register.
struct alignas(32) vector_bool {
    uint8_t bits[256];
};

// Registers of unaligned loads and stores: a block of UB, of which they hold the bytes `low` to `high`.
namespace ascsim {
struct alignas(32) Unaligned {
    uint8_t bytes[32];
    uint64_t low = 0, high = 0;
    uint32_t number = 0;
};
}  // namespace ascsim
struct vector_load_unalign : ascsim::Unaligned {
};
struct vector_store_unalign : ascsim::Unaligned {
};

// The address register: bytes.
struct addr_reg {
    uint64_t offset;
};
using iter_reg = addr_reg;
