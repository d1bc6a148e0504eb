// Activations as int8, in the very numbers of engine/quant: int8 rotates whole rows (rotation.py,
// int8.py), int4 scales blocks of 32 columns by powers of two (microscaling.py).
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "arena.h"
#include "simd.h"
#include "types.h"

namespace TANDEM_ISA {

using namespace tandem;

constexpr int64_t MX = 32;
#ifdef __AVX512VNNI__
constexpr bool SIGNS_APART = false;  // whether a product of bytes takes more than one instruction
#else
constexpr bool SIGNS_APART = true;
#endif

// `tokens` rows of codes, padded with zeros to `stride` columns.
struct Codes {
    int64_t kind, tokens, columns, stride;
    int8_t* codes;
    int16_t* wide;  // int8 again, where many tokens are multiplied in 16 bits
    float* scales;  // int8: one a row; int4: (rows, stride / MX)
    float* sums;    // int4: of each block's codes, scaled
};

constexpr int64_t MANY = 16;  // tokens from which on it pays to widen weights for all of them

inline bool widens(const Matrix& matrix, int64_t tokens) {
    return SIGNS_APART && matrix.kind == INT8 && tokens >= MANY;
}

inline Codes make_codes(Arena& arena, const Matrix& matrix, int64_t tokens) {
    int64_t stride = (matrix.columns + 63) / 64 * 64, blocks = stride / MX;
    int64_t scales = matrix.kind == INT8 ? tokens : tokens * blocks;
    return {matrix.kind,
            tokens,
            matrix.columns,
            stride,
            arena.take<int8_t>(tokens * stride),
            widens(matrix, tokens) ? arena.take<int16_t>(tokens * stride) : nullptr,
            arena.take<float>(scales),
            arena.take<float>(matrix.kind == INT8 ? 0 : scales)};
}

// The walk of Walsh and Hadamard over each `block` of the row. Sums of whole numbers below 2^23:
// exact in any order.
inline __m256 rotate_eight(__m256 x) {
    const __m256 four = _mm256_setr_ps(1, 1, 1, 1, -1, -1, -1, -1);
    const __m256 two = _mm256_setr_ps(1, 1, -1, -1, 1, 1, -1, -1);
    const __m256 one = _mm256_setr_ps(1, -1, 1, -1, 1, -1, 1, -1);
    x = _mm256_fmadd_ps(x, four, _mm256_permute2f128_ps(x, x, 1));
    x = _mm256_fmadd_ps(x, two, _mm256_permute_ps(x, 0x4E));
    return _mm256_fmadd_ps(x, one, _mm256_permute_ps(x, 0xB1));
}

inline void rotate(float* row, int64_t columns, int64_t block) {
    int64_t half = 1;
    if (block >= 8) {
        for (int64_t i = 0; i < columns; i += 8)
            _mm256_storeu_ps(row + i, rotate_eight(_mm256_loadu_ps(row + i)));
        half = 8;
    }
    for (; half < block; half *= 2)
        for (int64_t i = 0; i < columns; i += 2 * half)
            if (half < 8) {
                for (int64_t j = i; j < i + half; j++) {
                    float a = row[j], b = row[j + half];
                    row[j] = a + b;
                    row[j + half] = a - b;
                }
            } else {
                for (int64_t j = i; j < i + half; j += 8) {
                    __m256 a = _mm256_loadu_ps(row + j), b = _mm256_loadu_ps(row + j + half);
                    _mm256_storeu_ps(row + j, _mm256_add_ps(a, b));
                    _mm256_storeu_ps(row + j + half, _mm256_sub_ps(a, b));
                }
            }
}

// `peak` of the magnitudes; NaN where a value is not finite. Rows are padded with zeros to 16.
inline float peak_of(const float* row, int64_t columns) {
    F16 most = set(0.0f), strange = set(0.0f);
    for (int64_t i = 0; i < columns; i += LANES) {
        F16 x = load(row + i);
        most = max(most, abs(x));
        strange = fma(x, set(0.0f), strange);  // NaN once x is infinite or NaN
    }
    return sum(strange) == 0.0f ? highest(most) : std::numeric_limits<float>::quiet_NaN();
}

inline void quantize_int8(float* row, int64_t columns, int64_t block, int8_t* codes, float* scale) {
    constexpr float limit = 127.0f;
    int64_t padded = (columns + LANES - 1) / LANES * LANES;
    float peak = peak_of(row, padded);
    auto grid = static_cast<float>((int64_t{1} << 23) / block);
    float steps = peak > 0 ? (1.0f / peak) * grid : 0.0f;
    for (int64_t i = 0; i < padded; i += LANES) store(row + i, round(load(row + i) * set(steps)));
    rotate(row, columns, block);
    float unit = peak / static_cast<float>(static_cast<double>((int64_t{1} << 23) / block) *
                                           std::sqrt(static_cast<double>(block)));
    float own = peak_of(row, padded) / limit;
    float inverse = own > 0 ? 1.0f / own : 0.0f;
    for (int64_t i = 0; i < padded; i += LANES) {
        F16 whole = round(load(row + i) * set(inverse));
        store_bytes(codes + i, to_int(max(min(whole, set(limit)), set(-limit))));
    }
    *scale = own * unit;
    if (!(peak >= 0)) {
        std::fill(codes, codes + padded, int8_t{0});
        *scale = peak;
    }
}

// MXINT8: see microscaling.py. A block with a value that is not finite becomes NaN.
inline void quantize_mx(const float* block, int8_t* codes, float* scale, float* total) {
    F16 a = load(block), b = load(block + LANES);
    float peak = peak_of(block, MX);
    if (!(peak >= 0)) {
        std::fill(codes, codes + MX, int8_t{0});
        *scale = *total = peak;
        return;
    }
    int exponent = 0;
    if (peak > 0) std::frexp(peak, &exponent);
    float power = std::ldexp(1.0f, exponent - 7);
    float inverse = 1.0f / power;
    if (!(power > 0x1p-100f)) power = inverse = 0.0f;
    F16 limit = set(127.0f), least = set(-127.0f);
    F16 x = max(min(round(a * set(inverse)), limit), least);
    F16 y = max(min(round(b * set(inverse)), limit), least);
    store_bytes(codes, to_int(x));
    store_bytes(codes + LANES, to_int(y));
    *scale = power;
    *total = sum(x + y) * power;
}

// One row of `columns` values, whose memory up to the next 64 is written to, as codes.
inline void quantize(float* row, const Matrix& matrix, const Codes& out, int64_t token) {
    int8_t* codes = out.codes + token * out.stride;
    std::fill(row + out.columns, row + out.stride, 0.0f);
    std::fill(codes + out.columns, codes + out.stride, int8_t{0});
    if (matrix.kind == INT8) {
        quantize_int8(row, out.columns, matrix.group, codes, out.scales + token);
        if (out.wide) {
            int16_t* wide = out.wide + token * out.stride;
            for (int64_t i = 0; i < out.stride; i++) wide[i] = codes[i];
        }
        return;
    }
    int64_t blocks = out.stride / MX;
    for (int64_t i = 0; i < blocks; i++)
        quantize_mx(row + i * MX, codes + i * MX, out.scales + token * blocks + i,
                    out.sums + token * blocks + i);
}

}  // namespace TANDEM_ISA
