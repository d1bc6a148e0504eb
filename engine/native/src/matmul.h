// Quantised tokens times packed weights.
#pragma once
#include "dot.h"
#include "team.h"

namespace TANDEM_ISA {

struct Output {
    float* data;      // (tokens, stride)
    int64_t stride;
    bool add;         // to what is there
};

inline int64_t panels_of(const Matrix& matrix) { return (matrix.rows + PANEL - 1) / PANEL; }

inline int64_t int8_bytes(const Matrix& matrix) { return (matrix.columns + 3) / 4 * 64; }

inline int64_t int4_blocks(const Matrix& matrix) { return (matrix.columns + MX - 1) / MX; }

// One token's results for a panel: `values` or, at the ragged end, the first of them.
inline void put(const Matrix& matrix, const Output& out, int64_t token, int64_t row, F16 values) {
    float* at = out.data + token * out.stride + row;
    int64_t left = matrix.rows - row;
    if (left >= LANES) {
        if (matrix.bias) values = values + load(matrix.bias + row);
        store(at, out.add ? load(at) + values : values);
        return;
    }
    float each[LANES];
    store(each, values);
    for (int64_t i = 0; i < left; i++) {
        float value = matrix.bias ? each[i] + matrix.bias[row + i] : each[i];
        at[i] = out.add ? at[i] + value : value;
    }
}

template <int MR, int NP>
void tile_int8(const Matrix& matrix, const Codes& x, int64_t token, int64_t panel,
               const Output& out) {
    int32_t whole[MR * NP * PANEL];
    int64_t bytes = int8_bytes(matrix), row = panel * PANEL;
    dot_int8<MR, NP>(x.codes + token * x.stride, x.stride, matrix.codes + panel * bytes, bytes,
                     matrix.sums + row, (matrix.columns + 3) / 4, whole);
#pragma GCC unroll 8
    for (int m = 0; m < MR; m++)
        for (int p = 0; p < NP; p++) {
            F16 product = to_float(load(whole + (m * NP + p) * PANEL));
            F16 scaled = product * set(x.scales[token + m]) * load(matrix.scales + row + p * PANEL);
            put(matrix, out, token + m, row + p * PANEL, scaled);
        }
}

// Scales and offsets of a panel and group: 16 bfloat16 each.
struct Steps {
    const uint16_t* data;
    int64_t per_group;  // blocks of 32 columns

    Steps(const Matrix& matrix, int64_t panel) : per_group(matrix.group / MX) {
        int64_t groups = (int4_blocks(matrix) + per_group - 1) / per_group;
        data = reinterpret_cast<const uint16_t*>(matrix.scales) + panel * groups * 32;
    }
    F16 step(int64_t block) const { return load_bf16(data + block / per_group * 32); }
    F16 offset(int64_t block, F16 step) const {
        return fma(set(-8.0f), step, load_bf16(data + block / per_group * 32 + 16));
    }
};

// `total` plus a block's whole sums of one token, scaled.
inline F16 scaled(const Codes& x, int64_t at, I16 whole, F16 step, F16 offset, F16 total) {
    total = fma(to_float(whole), step * set(x.scales[at]), total);
    return fma(offset, set(x.sums[at]), total);
}

template <int MR>
void tile_int4(const Matrix& matrix, const Codes& x, int64_t token, int64_t panel,
               const Output& out) {
    int64_t blocks = int4_blocks(matrix), all = x.stride / MX;
    const uint8_t* codes = matrix.codes + panel * blocks * 256;
    Steps steps(matrix, panel);
    F16 total[MR];
#pragma GCC unroll 8
    for (int m = 0; m < MR; m++) total[m] = set(0.0f);
    for (int64_t i = 0; i < blocks; i++) {
        I16 whole[MR];
        dot_int4<MR>(x.codes + token * x.stride + i * MX, x.stride, codes + i * 256, whole);
        F16 step = steps.step(i), offset = steps.offset(i, step);
#pragma GCC unroll 8
        for (int m = 0; m < MR; m++)
            total[m] = scaled(x, (token + m) * all + i, whole[m], step, offset, total[m]);
    }
#pragma GCC unroll 8
    for (int m = 0; m < MR; m++) put(matrix, out, token + m, panel * PANEL, total[m]);
}

// Of one member: a panel of int8 in 16 bits, and what it is summed up to.
struct Bench {
    int16_t* wide;
    int32_t* whole;  // (tokens, PANEL)
};

constexpr int64_t WIDE_COLUMNS = 2048;  // of a panel that are widened at once: they stay in cache

inline Bench make_bench(Arena& arena, const Linear& linear, int64_t tokens) {
    if (!widens(linear.parts[0], tokens)) return {};
    return {arena.take<int16_t>(WIDE_COLUMNS * PANEL), arena.take<int32_t>(tokens * PANEL)};
}

#ifndef __AVX512VNNI__
inline void tile_wide(const Codes& x, int64_t token, int64_t first, const int16_t* rows,
                      int64_t count, int32_t* out) {
    const int16_t* from = x.wide + token * x.stride + first * 4;
    int32_t* to = out + token * PANEL;
    switch (std::min<int64_t>(WIDE_TILE, x.tokens - token)) {
        case 6: return dot_wide<6>(from, x.stride, rows, count, first > 0, to);
        case 5: return dot_wide<5>(from, x.stride, rows, count, first > 0, to);
        case 4: return dot_wide<4>(from, x.stride, rows, count, first > 0, to);
        case 3: return dot_wide<3>(from, x.stride, rows, count, first > 0, to);
        case 2: return dot_wide<2>(from, x.stride, rows, count, first > 0, to);
        default: return dot_wide<1>(from, x.stride, rows, count, first > 0, to);
    }
}

inline void panel_wide(const Matrix& matrix, const Codes& x, int64_t panel, const Bench& bench,
                       const Output& out) {
    int64_t fours = (matrix.columns + 3) / 4, row = panel * PANEL;
    const uint8_t* codes = matrix.codes + panel * fours * 64;
    for (int64_t first = 0; first < fours; first += WIDE_COLUMNS / 4) {
        int64_t count = std::min(WIDE_COLUMNS / 4, fours - first), token = 0;
        int16_t* below = bench.wide + count * 32;
        for (int64_t k = 0; k < count; k++)
            widen(codes + (first + k) * 64, bench.wide + k * 32, below + k * 32);
        for (int half = 0; half < 2; half++) {
            const int16_t* rows = half ? below : bench.wide;
            for (token = 0; token < x.tokens; token += WIDE_TILE)
                tile_wide(x, token, first, rows, count, bench.whole + half * 8);
        }
    }
    F16 scale = load(matrix.scales + row);
    for (int64_t token = 0; token < x.tokens; token++) {
        F16 product = to_float(load(bench.whole + token * PANEL));
        put(matrix, out, token, row, product * set(x.scales[token]) * scale);
    }
}
#endif

template <int MR>
void tile(const Matrix& matrix, const Codes& x, int64_t token, int64_t panel, int64_t panels,
          const Output& out) {
    if (matrix.kind == INT4) {
        for (int64_t p = 0; p < panels; p++) tile_int4<MR>(matrix, x, token, panel + p, out);
        return;
    }
    int64_t p = 0;
    if constexpr (PANELS > 1)
        for (; p + PANELS <= panels; p += PANELS)
            tile_int8<MR, PANELS>(matrix, x, token, panel + p, out);
    for (; p < panels; p++) tile_int8<MR, 1>(matrix, x, token, panel + p, out);
}

inline void tiles(const Matrix& matrix, const Codes& x, int64_t panel, int64_t panels,
                  const Bench& bench, const Output& out) {
#ifndef __AVX512VNNI__
    if (x.wide) {
        for (int64_t p = 0; p < panels; p++) panel_wide(matrix, x, panel + p, bench, out);
        return;
    }
#endif
    int64_t token = 0;
    for (; token + TILE <= x.tokens; token += TILE)
        tile<TILE>(matrix, x, token, panel, panels, out);
    switch (x.tokens - token) {
        case 5: return tile<5>(matrix, x, token, panel, panels, out);
        case 4: return tile<4>(matrix, x, token, panel, panels, out);
        case 3: return tile<3>(matrix, x, token, panel, panels, out);
        case 2: return tile<2>(matrix, x, token, panel, panels, out);
        case 1: return tile<1>(matrix, x, token, panel, panels, out);
    }
}

// A member's share of `linear`; all take part, and none waits for the others at the end.
inline void multiply(Team& team, const Linear& linear, const Codes& x, const Bench& bench,
                     const Output& out) {
    int64_t all = 0;
    for (int64_t i = 0; i < linear.count; i++) all += panels_of(linear.parts[i]);
    int64_t least = x.tokens < 16 ? 2 : PANELS;
    int64_t piece = std::max(least, all / (team.active() * 8) / PANELS * PANELS);
    if (x.tokens >= 16) piece = std::min(piece, int64_t{PANELS});
    int64_t first;
    while ((first = team.take(piece)) < all) {
        int64_t last = std::min(first + piece, all), before = 0, column = 0;
        for (int64_t i = 0; i < linear.count && before < last; i++) {
            const Matrix& part = linear.parts[i];
            int64_t own = panels_of(part);
            int64_t from = std::max(first, before), to = std::min(last, before + own);
            if (from < to)
                tiles(part, x, from - before, to - from, bench,
                      {out.data + column, out.stride, out.add});
            before += own;
            column += part.rows;
        }
    }
}

}  // namespace TANDEM_ISA
