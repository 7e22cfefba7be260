// The element types of 8 and 4 bits as numbers. A chip has them as storage alone; portable programs compute with them in
// host code. Those of 4 bits lie two in a byte: as a number such a type is its low half.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace ascsim {

// Sign, exponent, fraction. `Ieee`: all bits of the exponent set mean infinity and NaN; else a code of all bits set is NaN,
// in the formats that have one.
template <int Exponent, int Fraction, bool Ieee, bool HasNan>
struct Fields {
    static constexpr int bits = 1 + Exponent + Fraction;
    static constexpr bool has_infinity = Ieee, ties_away = false, is_signed = true, negative_zero = true;
    static constexpr uint8_t infinity = ((1 << Exponent) - 1) << Fraction;
    static constexpr uint8_t nan = Ieee ? infinity + 1 : HasNan ? (1 << (bits - 1)) - 1 : 0;
    static constexpr uint8_t largest = Ieee ? infinity - 1 : (1 << (bits - 1)) - 1 - HasNan, smallest = 1 << Fraction;

    static double value(uint8_t code)
    {
        const int exponent = code >> Fraction & ((1 << Exponent) - 1), fraction = code & ((1 << Fraction) - 1);
        constexpr int bias = Exponent == 1 ? 1 : (1 << (Exponent - 1)) - 1;
        const double sign = code >> (bits - 1) & 1 ? -1.0 : 1.0;
        if (Ieee && exponent == (1 << Exponent) - 1) {
            return sign * (fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity());
        }
        if (HasNan && !Ieee && (code & nan) == nan) {
            return std::numeric_limits<double>::quiet_NaN();
        }
        const int significand = exponent ? fraction | 1 << Fraction : fraction;
        return sign * std::ldexp(significand, (exponent ? exponent : 1) - bias - Fraction);
    }
};

// A power of two.
struct Scale {
    static constexpr int bits = 8;
    static constexpr bool has_infinity = false, ties_away = false, is_signed = false, negative_zero = false;
    static constexpr uint8_t infinity = 0, nan = 0xff, largest = 0xfe, smallest = 0;
    static double value(uint8_t code)
    {
        return code == nan ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, code - 127);
    }
};

// Sign, a prefix that says how many bits the exponent has, exponent (its sign, then its size without the leading one),
// fraction.
struct Tapered {
    static constexpr int bits = 8;
    static constexpr bool has_infinity = true, ties_away = true, is_signed = true, negative_zero = false;
    static constexpr uint8_t infinity = 0x6f, nan = 0x80, largest = 0x6e, smallest = 0x08;
    static double value(uint8_t code)
    {
        const double sign = code & 0x80 ? -1.0 : 1.0;
        const int rest = code & 0x7f;
        if (code == nan) {
            return std::numeric_limits<double>::quiet_NaN();
        }
        if (rest == infinity) {
            return sign * std::numeric_limits<double>::infinity();
        }
        if (rest < 8) {
            return rest ? sign * std::ldexp(1.0, rest - 23) : 0.0;
        }
        const int width = rest >= 0x60 ? 4 : rest >= 0x40 ? 3 : rest >= 0x20 ? 2 : rest >= 0x10 ? 1 : 0;
        const int kept = width == 4 ? 1 : width == 3 ? 2 : 3;
        const int field = rest >> kept & ((1 << width) - 1), top = width ? 1 << (width - 1) : 0;
        const int size = width ? top | (field & (top - 1)) : 0;
        const double significand = 1.0 + std::ldexp(rest & ((1 << kept) - 1), -kept);
        return sign * std::ldexp(significand, field & top ? -size : size);
    }
};

template <class Format>
struct Number8 {
    uint8_t bits = 0;

    Number8() = default;
    Number8(double value) : bits(nearest(value)) {}
    operator double() const { return Format::value(bits); }
    uint8_t RawData() const { return bits; }
    static Number8 FromRaw(uint8_t code)
    {
        Number8 made;
        made.bits = code;
        return made;
    }

private:
    // A number beyond the largest becomes infinity, where there is one, from half a step beyond it on.
    static uint8_t nearest(double value)
    {
        if (std::isnan(value)) {
            return Format::nan;
        }
        const double end = Format::value(Format::largest);
        if (Format::has_infinity && std::fabs(value) >= 1.5 * end - 0.5 * Format::value(Format::largest - 1)) {
            return Format::infinity | (value < 0 ? 0x80 : 0);
        }
        uint8_t best = Format::negative_zero && std::signbit(value) ? 1 << (Format::bits - 1) : 0;
        double least = std::fabs(Format::value(best) - value);
        for (int code = 0; code < 1 << Format::bits; ++code) {
            const double known = Format::value(static_cast<uint8_t>(code)), distance = std::fabs(known - value);
            const bool wins_tie = Format::ties_away ? std::fabs(known) > std::fabs(Format::value(best)) : (best & 1) != 0;
            if (std::isfinite(known) && (distance < least || (distance == least && wins_tie))) {
                least = distance;
                best = static_cast<uint8_t>(code);
            }
        }
        return best;
    }
};

template <class Format>
struct NumberLimits {
    using Type = Number8<Format>;
    static constexpr bool is_specialized = true, is_signed = Format::is_signed, is_integer = false, is_exact = false;
    static constexpr bool has_infinity = Format::has_infinity, has_quiet_NaN = Format::nan != 0;
    static constexpr int radix = 2;
    static Type min() { return Type::FromRaw(Format::smallest); }
    static Type max() { return Type::FromRaw(Format::largest); }
    static Type lowest() { return Type::FromRaw(Format::is_signed ? Format::largest | 1 << (Format::bits - 1) : 0); }
    static Type infinity() { return Type::FromRaw(Format::infinity); }
    static Type quiet_NaN() { return Type::FromRaw(Format::nan); }
};

}  // namespace ascsim

typedef ascsim::Number8<ascsim::Tapered> hifloat8_t;
typedef ascsim::Number8<ascsim::Fields<4, 3, false, true>> fp8_e4m3fn_t;
typedef ascsim::Number8<ascsim::Fields<5, 2, true, true>> fp8_e5m2_t;
typedef ascsim::Number8<ascsim::Scale> fp8_e8m0_t;
typedef ascsim::Number8<ascsim::Fields<2, 1, false, false>> fp4x2_e2m1_t;
typedef ascsim::Number8<ascsim::Fields<1, 2, false, false>> fp4x2_e1m2_t;

namespace std {

template <class Format>
struct numeric_limits<ascsim::Number8<Format>> : ascsim::NumberLimits<Format> {};

}  // namespace std

// Whether two elements share a byte.
template <typename T>
constexpr bool IsTwinType()
{
    return std::is_same_v<T, fp4x2_e2m1_t> || std::is_same_v<T, fp4x2_e1m2_t>;
}

// Element `offset` of an array, which may be half a byte.
template <typename T>
T GetProperDataPart(T* array, size_t offset)
{
    if constexpr (IsTwinType<T>()) {
        return T::FromRaw(array[offset / 2].RawData() >> offset % 2 * 4 & 0xf);
    } else {
        return array[offset];
    }
}
template <typename T>
void SetProperDataPart(T* array, size_t offset, T value)
{
    if constexpr (IsTwinType<T>()) {
        const unsigned shift = offset % 2 * 4, rest = array[offset / 2].RawData() & ~(0xfu << shift);
        array[offset / 2] = T::FromRaw(static_cast<uint8_t>(rest | (value.RawData() & 0xfu) << shift));
    } else {
        array[offset] = value;
    }
}
