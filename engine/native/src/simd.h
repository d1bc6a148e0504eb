// Sixteen float32 lanes as one value: one AVX-512 register, or two of AVX2.
//
// Sums over lanes are taken in one order on both, so that a processor with wider registers gives
// the same answer to the last bit.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace TANDEM_ISA {

constexpr int LANES = 16;

#ifdef __AVX512F__

struct F16 {
    __m512 v;
};
struct I16 {
    __m512i v;
};
inline F16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void store(float* p, F16 a) { _mm512_storeu_ps(p, a.v); }
inline F16 set(float x) { return {_mm512_set1_ps(x)}; }
inline F16 operator+(F16 a, F16 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline F16 operator-(F16 a, F16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline F16 operator*(F16 a, F16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline F16 operator/(F16 a, F16 b) { return {_mm512_div_ps(a.v, b.v)}; }
inline F16 fma(F16 a, F16 b, F16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline F16 max(F16 a, F16 b) { return {_mm512_max_ps(a.v, b.v)}; }
inline F16 min(F16 a, F16 b) { return {_mm512_min_ps(a.v, b.v)}; }
inline F16 abs(F16 a) { return {_mm512_abs_ps(a.v)}; }
inline F16 round(F16 a) {
    return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline F16 to_float(I16 a) { return {_mm512_cvtepi32_ps(a.v)}; }
inline I16 to_int(F16 a) { return {_mm512_cvtps_epi32(a.v)}; }
inline I16 load(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
inline void store(int32_t* p, I16 a) { _mm512_storeu_si512(p, a.v); }
inline I16 operator+(I16 a, I16 b) { return {_mm512_add_epi32(a.v, b.v)}; }
inline I16 operator-(I16 a, I16 b) { return {_mm512_sub_epi32(a.v, b.v)}; }
inline I16 shift_left(I16 a, int n) { return {_mm512_slli_epi32(a.v, n)}; }
inline I16 set(int32_t x) { return {_mm512_set1_epi32(x)}; }
inline F16 as_float(I16 a) { return {_mm512_castsi512_ps(a.v)}; }
inline void store_bytes(int8_t* p, I16 a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}
inline F16 load_bf16(const uint16_t* p) {
    __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
}
inline F16 load_bytes(const int8_t* p) {
    __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
}
inline __m256 low(F16 a) { return _mm512_castps512_ps256(a.v); }
inline __m256 high(F16 a) {
    return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a.v), 1));
}

#else

struct F16 {
    __m256 a, b;
};
struct I16 {
    __m256i a, b;
};
inline F16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, F16 x) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}
inline F16 set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline F16 operator+(F16 x, F16 y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
inline F16 operator-(F16 x, F16 y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
inline F16 operator*(F16 x, F16 y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
inline F16 operator/(F16 x, F16 y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
inline F16 fma(F16 x, F16 y, F16 z) {
    return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
inline F16 max(F16 x, F16 y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
inline F16 min(F16 x, F16 y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
inline F16 abs(F16 x) {
    __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
}
inline F16 round(F16 x) {
    constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(x.a, nearest), _mm256_round_ps(x.b, nearest)};
}
inline F16 to_float(I16 x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
inline I16 to_int(F16 x) { return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)}; }
inline I16 load(const int32_t* p) {
    const auto* q = reinterpret_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
}
inline void store(int32_t* p, I16 x) {
    auto* q = reinterpret_cast<__m256i*>(p);
    _mm256_storeu_si256(q, x.a);
    _mm256_storeu_si256(q + 1, x.b);
}
inline I16 operator+(I16 x, I16 y) {
    return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)};
}
inline I16 operator-(I16 x, I16 y) {
    return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)};
}
inline I16 shift_left(I16 x, int n) {
    return {_mm256_slli_epi32(x.a, n), _mm256_slli_epi32(x.b, n)};
}
inline I16 set(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
inline F16 as_float(I16 x) { return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)}; }
inline void store_bytes(int8_t* p, I16 x) {
    __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xD8);
    __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words),
                                    _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
}
inline F16 load_bf16(const uint16_t* p) {
    const auto* q = reinterpret_cast<const __m128i*>(p);
    __m256i a = _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(q)), 16);
    __m256i b = _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(q + 1)), 16);
    return {_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)};
}
inline F16 load_bytes(const int8_t* p) {
    __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    __m256i a = _mm256_cvtepi8_epi32(bytes);
    __m256i b = _mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8));
    return {_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b)};
}
inline __m256 low(F16 x) { return x.a; }
inline __m256 high(F16 x) { return x.b; }

#endif

inline float sum(F16 x) {
    __m256 eight = _mm256_add_ps(low(x), high(x));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline float highest(F16 x) {
    __m256 eight = _mm256_max_ps(low(x), high(x));
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// exp for x <= 88: 2^n times a polynomial on [-ln2/2, ln2/2] (Cephes' coefficients, error below
// 2 units in the last place). Below -87 the result is 0; of what is not finite, NaN.
inline F16 exp(F16 x) {
    F16 floor = set(-87.0f);
    F16 inside = max(x, floor);
    F16 n = round(inside * set(1.44269504088896341f));
    F16 r = fma(n, set(-0.693359375f), inside);
    r = fma(n, set(2.12194440e-4f), r);
    F16 p = set(1.9875691500e-4f);
    p = fma(p, r, set(1.3981999507e-3f));
    p = fma(p, r, set(8.3334519073e-3f));
    p = fma(p, r, set(4.1665795894e-2f));
    p = fma(p, r, set(1.6666665459e-1f));
    p = fma(p, r, set(5.0000001201e-1f));
    p = fma(p, r * r, r + set(1.0f));
    I16 exponent = shift_left(to_int(n) + set(int32_t{127}), 23);
    F16 value = fma(x, set(0.0f), p * as_float(exponent));
#ifdef __AVX512F__
    return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.v, floor.v, _CMP_LT_OQ), value.v,
                                 _mm512_setzero_ps())};
#else
    return {_mm256_andnot_ps(_mm256_cmp_ps(x.a, floor.a, _CMP_LT_OQ), value.a),
            _mm256_andnot_ps(_mm256_cmp_ps(x.b, floor.b, _CMP_LT_OQ), value.b)};
#endif
}

inline F16 sigmoid(F16 x) { return set(1.0f) / (set(1.0f) + exp(min(set(0.0f) - x, set(88.0f)))); }

inline F16 silu(F16 x) { return x * sigmoid(x); }

inline F16 tanh(F16 x) {
    F16 twice = fma(x, set(0.0f), exp(max(min(x + x, set(60.0f)), set(-60.0f))));
    return (twice - set(1.0f)) / (twice + set(1.0f));
}

// GELU by its tanh approximation (arXiv 1606.08415).
inline F16 gelu(F16 x) {
    F16 cubic = fma(x * x * x, set(0.044715f), x);
    return set(0.5f) * x * (set(1.0f) + tanh(cubic * set(0.7978845608028654f)));
}

}  // namespace TANDEM_ISA
