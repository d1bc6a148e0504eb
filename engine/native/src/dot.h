// Dot products of whole numbers: a tile of MR tokens times one panel of 16 output rows.
//
// A panel's codes lie in groups of four columns: 16 rows times 4 columns, 64 bytes. int4 keeps two
// such groups in 64 bytes, the first in the low halves.
#pragma once
#include "quantize.h"

// Not inlined: among a caller's own values gcc 12 finds no registers for the sums.
#define ALONE __attribute__((noinline))

namespace TANDEM_ISA {

inline int32_t four_bytes(const int8_t* p) {
    int32_t word;
    std::memcpy(&word, p, 4);
    return word;
}

// Keeps a sum in one register: gcc 12 otherwise keeps two of each and spills them.
template <class Vector>
inline void stay(Vector& sum) {
#ifdef __AVX512F__
    asm("" : "+v"(sum));
#else
    asm("" : "+x"(sum));
#endif
}

inline void stay(F16& sum) {
#ifdef __AVX512F__
    stay(sum.v);
#else
    stay(sum.a);
    stay(sum.b);
#endif
}

#ifdef __AVX512VNNI__

constexpr int TILE = 6;

// Tokens' codes are taken as unsigned by adding 128; `sums` takes that away again.
template <int MR, int NP>
ALONE void dot_int8(const int8_t* x, int64_t stride, const uint8_t* panels, int64_t panel_bytes,
                     const int32_t* sums, int64_t fours, int32_t* out) {
    __m512i total[MR][NP];
#pragma GCC unroll 8
    for (int m = 0; m < MR; m++)
#pragma GCC unroll 4
        for (int p = 0; p < NP; p++) total[m][p] = _mm512_setzero_si512();
    const __m512i flip = _mm512_set1_epi32(static_cast<int32_t>(0x80808080u));
    for (int64_t k = 0; k < fours; k++) {
        __m512i w[NP];
#pragma GCC unroll 4
        for (int p = 0; p < NP; p++) w[p] = _mm512_loadu_si512(panels + p * panel_bytes + k * 64);
#pragma GCC unroll 8
        for (int m = 0; m < MR; m++) {
            __m512i four = _mm512_set1_epi32(four_bytes(x + m * stride + k * 4));
            four = _mm512_xor_si512(four, flip);
#pragma GCC unroll 4
            for (int p = 0; p < NP; p++) total[m][p] = _mm512_dpbusd_epi32(total[m][p], four, w[p]);
        }
    }
#pragma GCC unroll 4
    for (int p = 0; p < NP; p++) {
        __m512i offset = _mm512_slli_epi32(_mm512_loadu_si512(sums + p * PANEL), 7);
#pragma GCC unroll 8
        for (int m = 0; m < MR; m++)
            _mm512_storeu_si512(out + (m * NP + p) * PANEL, _mm512_sub_epi32(total[m][p], offset));
    }
}

constexpr int PANELS = 4;  // at once

// Of 32 columns: codes 0..15 times the tokens' codes.
template <int MR>
ALONE void dot_int4(const int8_t* x, int64_t stride, const uint8_t* codes, I16* out) {
    __m512i total[MR];
#pragma GCC unroll 8
    for (int m = 0; m < MR; m++) total[m] = _mm512_setzero_si512();
    const __m512i mask = _mm512_set1_epi8(0x0F);
    for (int k = 0; k < 4; k++) {
        __m512i both = _mm512_loadu_si512(codes + k * 64);
        __m512i first = _mm512_and_si512(both, mask);
        __m512i second = _mm512_and_si512(_mm512_srli_epi16(both, 4), mask);
#pragma GCC unroll 8
        for (int m = 0; m < MR; m++) {
            const int8_t* at = x + m * stride + k * 8;
            total[m] = _mm512_dpbusd_epi32(total[m], first, _mm512_set1_epi32(four_bytes(at)));
            total[m] = _mm512_dpbusd_epi32(total[m], second, _mm512_set1_epi32(four_bytes(at + 4)));
        }
    }
#pragma GCC unroll 8
    for (int m = 0; m < MR; m++) out[m] = {total[m]};
}

#elif defined(__AVX512F__)
#error "AVX-512 kernels need VNNI; build with -mavx512vnni or for AVX2."
#else

constexpr int TILE = 4;
constexpr int PANELS = 1;
constexpr int WIDE_TILE = 6;

// The tokens' magnitudes are the unsigned operand, their signs go over to the weights. Both are at
// most 127, so that no sum of two products leaves 16 bits.
template <int MR, int NP>
ALONE void dot_int8(const int8_t* x, int64_t stride, const uint8_t* panels, int64_t,
                     const int32_t*, int64_t fours, int32_t* out) {
    static_assert(NP == 1, "One panel fills the registers.");
    __m256i total[MR][2];
#pragma GCC unroll 8
    for (int m = 0; m < MR; m++) total[m][0] = total[m][1] = _mm256_setzero_si256();
    const __m256i ones = _mm256_set1_epi16(1);
    for (int64_t k = 0; k < fours; k++) {
        const auto* w = reinterpret_cast<const __m256i*>(panels + k * 64);
        __m256i w0 = _mm256_loadu_si256(w), w1 = _mm256_loadu_si256(w + 1);
#pragma GCC unroll 8
        for (int m = 0; m < MR; m++) {
            __m256i four = _mm256_set1_epi32(four_bytes(x + m * stride + k * 4));
            __m256i size = _mm256_abs_epi8(four);
            __m256i a = _mm256_maddubs_epi16(size, _mm256_sign_epi8(w0, four));
            __m256i b = _mm256_maddubs_epi16(size, _mm256_sign_epi8(w1, four));
            total[m][0] = _mm256_add_epi32(total[m][0], _mm256_madd_epi16(a, ones));
            total[m][1] = _mm256_add_epi32(total[m][1], _mm256_madd_epi16(b, ones));
            stay(total[m][0]);
            stay(total[m][1]);
        }
    }
#pragma GCC unroll 8
    for (int m = 0; m < MR; m++) {
        auto* to = reinterpret_cast<__m256i*>(out + m * PANEL);
        _mm256_storeu_si256(to, total[m][0]);
        _mm256_storeu_si256(to + 1, total[m][1]);
    }
}

// 64 bytes of a panel as 16-bit numbers: its first eight rows to `to`, the others to `below`.
inline void widen(const uint8_t* from, int16_t* to, int16_t* below) {
    for (int i = 0; i < 4; i++) {
        __m128i rows = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i);
        int16_t* half = i < 2 ? to : below;
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(half) + i % 2, _mm256_cvtepi8_epi16(rows));
    }
}

// The same products from 16-bit numbers, of eight of a panel's rows: a third fewer instructions than
// `dot_int8` for a token, once a panel is widened. A register has four rows, each with two sums that
// are added at the end.
template <int MR>
ALONE void dot_wide(const int16_t* x, int64_t stride, const int16_t* rows, int64_t fours, bool add,
                     int32_t* out) {
    __m256i total[MR][2];
#pragma GCC unroll 8
    for (int m = 0; m < MR; m++) total[m][0] = total[m][1] = _mm256_setzero_si256();
    for (int64_t k = 0; k < fours; k++) {
        const auto* w = reinterpret_cast<const __m256i*>(rows + k * 32);
        __m256i w0 = _mm256_loadu_si256(w), w1 = _mm256_loadu_si256(w + 1);
#pragma GCC unroll 8
        for (int m = 0; m < MR; m++) {
            int64_t word;
            std::memcpy(&word, x + m * stride + k * 4, 8);
            __m256i four = _mm256_set1_epi64x(word);
            total[m][0] = _mm256_add_epi32(total[m][0], _mm256_madd_epi16(four, w0));
            total[m][1] = _mm256_add_epi32(total[m][1], _mm256_madd_epi16(four, w1));
            stay(total[m][0]);
            stay(total[m][1]);
        }
    }
#pragma GCC unroll 8
    for (int m = 0; m < MR; m++) {
        auto* to = reinterpret_cast<__m256i*>(out + m * PANEL);
        __m256i pairs = _mm256_hadd_epi32(total[m][0], total[m][1]);
        pairs = _mm256_permute4x64_epi64(pairs, 0xD8);
        if (add) pairs = _mm256_add_epi32(pairs, _mm256_loadu_si256(to));
        _mm256_storeu_si256(to, pairs);
    }
}

// Eight products of at most 15 * 127, two by two, are summed in 16 bits before they are widened.
template <int MR>
ALONE void dot_int4(const int8_t* x, int64_t stride, const uint8_t* codes, I16* out) {
    __m256i total[MR][2];
    const __m256i mask = _mm256_set1_epi8(0x0F), ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
    for (int m = 0; m < MR; m++) total[m][0] = total[m][1] = _mm256_setzero_si256();
#pragma GCC unroll 1
    for (int k = 0; k < 4; k++) {
        const auto* w = reinterpret_cast<const __m256i*>(codes + k * 64);
        __m256i a = _mm256_loadu_si256(w), b = _mm256_loadu_si256(w + 1);
        __m256i a0 = _mm256_and_si256(a, mask), b0 = _mm256_and_si256(b, mask);
        __m256i a1 = _mm256_and_si256(_mm256_srli_epi16(a, 4), mask);
        __m256i b1 = _mm256_and_si256(_mm256_srli_epi16(b, 4), mask);
#pragma GCC unroll 8
        for (int m = 0; m < MR; m++) {
            const int8_t* at = x + m * stride + k * 8;
            __m256i first = _mm256_set1_epi32(four_bytes(at));
            __m256i second = _mm256_set1_epi32(four_bytes(at + 4));
            total[m][0] = _mm256_add_epi16(total[m][0], _mm256_maddubs_epi16(a0, first));
            total[m][1] = _mm256_add_epi16(total[m][1], _mm256_maddubs_epi16(b0, first));
            total[m][0] = _mm256_add_epi16(total[m][0], _mm256_maddubs_epi16(a1, second));
            total[m][1] = _mm256_add_epi16(total[m][1], _mm256_maddubs_epi16(b1, second));
            stay(total[m][0]);
            stay(total[m][1]);
        }
    }
#pragma GCC unroll 8
    for (int m = 0; m < MR; m++)
        out[m] = {_mm256_madd_epi16(total[m][0], ones), _mm256_madd_epi16(total[m][1], ones)};
}

#endif

}  // namespace TANDEM_ISA
