// Attention over paged keys and values, with a running softmax (Milakov and Gimelshein, arXiv
// 1805.02867; Dao et al., arXiv 2205.14135).
//
// A query's sums are taken key by key in chunks that begin at multiples of 64 of its sequence, so
// that they are the same to the last bit whatever else is computed with it.
#pragma once
#include "dot.h"
#include "team.h"

namespace TANDEM_ISA {

constexpr float LOWEST = -1e30f;  // a score that counts for nothing
constexpr int64_t CHUNK = 64;     // keys at once: whole blocks
constexpr int64_t QUERIES = 32;  // of a sequence that share the keys they read
constexpr int64_t MOST_LINES = QUERIES * 64;  // 64 query heads to a KV head
#ifdef __AVX512F__
constexpr int LINES = 6, WIDE = 4;
#else
constexpr int LINES = 3, WIDE = 2;
#endif

struct Attend {
    const Attention& layer;
    const Step& step;
    const float* mixed;     // (tokens, mixed_stride): rotated queries first
    int64_t mixed_stride;
    float* out;             // (tokens, out_stride)
    int64_t out_stride;
};

// Of one member: what a tile of queries and a chunk of keys need.
struct Desk {
    float* keys;    // (dim, CHUNK)
    float* values;  // (CHUNK, dim)
    float* row;     // (CHUNK, dim)
    float* scores;  // (lines, CHUNK)
    float* total;   // (lines, dim)
    float* peak;    // (lines,)
    float* weight;  // (lines,)
    const float** query;
};

inline int64_t group_of(const Attention& layer) { return layer.heads / layer.kv_heads; }

inline Desk make_desk(Arena& arena, const Attention& layer) {
    int64_t lines = std::max(QUERIES * group_of(layer), layer.heads), dim = layer.dim;
    return {arena.take<float>(dim * CHUNK),   arena.take<float>(dim * CHUNK),
            arena.take<float>(dim * CHUNK),   arena.take<float>(lines * CHUNK),
            arena.take<float>(lines * dim),   arena.take<float>(lines),
            arena.take<float>(lines),         arena.take<const float*>(lines)};
}

// A block's vectors of one head in float32, BLOCK of them, (BLOCK, dim).
inline void read_block(const Attention& layer, const void* pages, const float* scales,
                       int64_t block, int64_t head, float* out) {
    int64_t dim = layer.dim, step = layer.kv_heads * dim;
    int64_t first = (block * BLOCK * layer.kv_heads + head) * dim;
    for (int64_t t = 0; t < BLOCK; t++, first += step, out += dim) {
        if (layer.cache.kind == KV_FP32) {
            std::memcpy(out, static_cast<const float*>(pages) + first, dim * sizeof(float));
        } else if (layer.cache.kind == KV_BF16) {
            const auto* from = static_cast<const uint16_t*>(pages) + first;
            for (int64_t d = 0; d < dim; d += LANES) store(out + d, load_bf16(from + d));
        } else {
            const auto* from = static_cast<const int8_t*>(pages) + first;
            F16 scale = set(scales[(block * BLOCK + t) * layer.kv_heads + head]);
            for (int64_t d = 0; d < dim; d += LANES) store(out + d, load_bytes(from + d) * scale);
        }
    }
}

inline void transpose_eight(const float* from, int64_t stride, float* to, int64_t to_stride) {
    __m256 r[8], s[8];
    for (int i = 0; i < 8; i++) r[i] = _mm256_loadu_ps(from + i * stride);
    for (int i = 0; i < 8; i += 2) {
        s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            r[i + 2 * j] = _mm256_shuffle_ps(s[i + j], s[i + j + 2], 0x44);
            r[i + 2 * j + 1] = _mm256_shuffle_ps(s[i + j], s[i + j + 2], 0xEE);
        }
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(to + i * to_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * to_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}

// Out (MR, WIDE * 16) of a product whose left lines are at `left` and whose right rows are `count`
// long runs of `stride`; begins with what is in `out`, scaled by `shrink`, if there is one.
template <int MR>
ALONE void product(const float* const* left, const float* right, int64_t stride, int64_t count,
                    float* out, int64_t out_stride, const float* shrink) {
    F16 total[MR][WIDE];
#pragma GCC unroll 8
    for (int m = 0; m < MR; m++)
#pragma GCC unroll 4
        for (int w = 0; w < WIDE; w++)
            total[m][w] = shrink ? load(out + m * out_stride + w * LANES) * set(shrink[m])
                                 : set(0.0f);
    for (int64_t k = 0; k < count; k++) {
        F16 row[WIDE];
#pragma GCC unroll 4
        for (int w = 0; w < WIDE; w++) row[w] = load(right + k * stride + w * LANES);
#pragma GCC unroll 8
        for (int m = 0; m < MR; m++) {
            F16 x = set(left[m][k]);
#pragma GCC unroll 4
            for (int w = 0; w < WIDE; w++) {
                total[m][w] = fma(x, row[w], total[m][w]);
                stay(total[m][w]);
            }
        }
    }
#pragma GCC unroll 8
    for (int m = 0; m < MR; m++)
#pragma GCC unroll 4
        for (int w = 0; w < WIDE; w++) store(out + m * out_stride + w * LANES, total[m][w]);
}

// The same for any number of lines and a width of whole vectors.
inline void product(const float* const* left, int64_t lines, const float* right, int64_t stride,
                    int64_t count, float* out, int64_t width, const float* shrink) {
    for (int64_t line = 0; line < lines; line += LINES) {
        int64_t mr = std::min<int64_t>(LINES, lines - line);
        const float* const* from = left + line;
        const float* less = shrink ? shrink + line : nullptr;
        int64_t column = 0;
        for (; column + WIDE * LANES <= width; column += WIDE * LANES) {
            const float* at = right + column;
            float* to = out + line * width + column;
            switch (mr) {
#if defined(__AVX512F__)
                case 6: product<6>(from, at, stride, count, to, width, less); break;
                case 5: product<5>(from, at, stride, count, to, width, less); break;
                case 4: product<4>(from, at, stride, count, to, width, less); break;
#endif
                case 3: product<3>(from, at, stride, count, to, width, less); break;
                case 2: product<2>(from, at, stride, count, to, width, less); break;
                default: product<1>(from, at, stride, count, to, width, less);
            }
        }
        for (; column < width; column += LANES)  // the narrow rest
            for (int64_t m = 0; m < mr; m++) {
                float* to = out + (line + m) * width + column;
                F16 total = less ? load(to) * set(less[m]) : set(0.0f);
                for (int64_t k = 0; k < count; k++)
                    total = fma(set(from[m][k]), load(right + k * stride + column), total);
                store(to, total);
            }
    }
}

// A chunk's softmax of one line over the keys first..last of it, the running sums scaled down by
// what is returned.
inline float soften(float* scores, int64_t first, int64_t last, float scale, float cap, float& peak,
                    float& weight) {
    F16 most = set(LOWEST);
    alignas(64) float masked[LANES];
    for (int64_t i = 0; i < CHUNK; i += LANES) {
        F16 s = load(scores + i) * set(scale);
        if (cap > 0) s = set(cap) * tanh(s / set(cap));
        if (i < first || i + LANES > last) {
            store(masked, s);
            for (int64_t j = 0; j < LANES; j++)
                if (i + j < first || i + j >= last) masked[j] = LOWEST;
            s = load(masked);
        }
        store(scores + i, s);
        most = max(most, s);
    }
    float higher = std::max(peak, highest(most));
    F16 total = set(0.0f), level = set(higher);
    for (int64_t i = 0; i < CHUNK; i += LANES) {
        F16 share = exp(load(scores + i) - level);
        store(scores + i, share);
        total = total + share;
    }
    float each[LANES];
    store(each, exp(set(peak - higher)));
    peak = higher;
    weight = weight * each[0] + sum(total);
    return each[0];
}

// What one task computes: tokens of one row for some KV heads.
struct Piece {
    int64_t row, begin, queries, head, heads;
};

// One head's part of a chunk of keys, into its running sums.
inline void attend_chunk(const Attend& it, const Desk& desk, const Piece& piece, int64_t head,
                         int64_t chunk, int64_t keys) {
    const Attention& layer = it.layer;
    int64_t group = group_of(layer), dim = layer.dim, lines = piece.queries * group;
    int64_t position = it.step.starts[piece.row] + piece.begin;
    int64_t before = (head - piece.head) * lines;
    const int64_t* table = it.step.tables + it.step.offsets[piece.row];
    for (int64_t k = 0; k < keys; k += BLOCK) {
        int64_t block = table[(chunk + k) / BLOCK];
        read_block(layer, layer.cache.keys, layer.cache.key_scales, block, head, desk.row);
        for (int64_t t = 0; t < BLOCK; t += 8)
            for (int64_t d = 0; d < dim; d += 8)
                transpose_eight(desk.row + t * dim + d, dim, desk.keys + d * CHUNK + k + t, CHUNK);
        read_block(layer, layer.cache.values, layer.cache.value_scales, block, head,
                   desk.values + k * dim);
    }
    if (keys < CHUNK)  // what is not there counts for nothing, and must be no NaN
        for (int64_t d = 0; d < dim; d++)
            std::fill(desk.keys + d * CHUNK + keys, desk.keys + (d + 1) * CHUNK, 0.0f);
    product(desk.query + before, lines, desk.keys, CHUNK, dim, desk.scores, CHUNK, nullptr);
    float shrink[MOST_LINES];
    const float* shares[MOST_LINES];
    for (int64_t line = 0; line < lines; line++) {
        int64_t at = position + line / group;
        int64_t first = layer.window ? std::max<int64_t>(0, at - layer.window + 1 - chunk) : 0;
        int64_t last = std::min(CHUNK, at + 1 - chunk);
        float* scores = desk.scores + line * CHUNK;
        shares[line] = scores;
        shrink[line] = 1.0f;
        if (first < last)
            shrink[line] = soften(scores, first, last, layer.scale, layer.softcap,
                                  desk.peak[before + line], desk.weight[before + line]);
        else
            std::fill(scores, scores + CHUNK, 0.0f);
    }
    product(shares, lines, desk.values, dim, keys, desk.total + before * dim, dim, shrink);
}

inline void attend_piece(const Attend& it, const Desk& desk, const Piece& piece) {
    const Attention& layer = it.layer;
    int64_t group = group_of(layer), dim = layer.dim, lines = piece.queries * group;
    int64_t token = it.step.firsts[piece.row] + piece.begin;
    int64_t position = it.step.starts[piece.row] + piece.begin, all = piece.heads * lines;
    for (int64_t h = 0; h < piece.heads; h++)
        for (int64_t line = 0; line < lines; line++)
            desk.query[h * lines + line] = it.mixed + (token + line / group) * it.mixed_stride +
                                           ((piece.head + h) * group + line % group) * dim;
    std::fill(desk.total, desk.total + all * dim, 0.0f);
    std::fill(desk.peak, desk.peak + all, LOWEST);
    std::fill(desk.weight, desk.weight + all, 0.0f);
    int64_t stop = position + piece.queries;
    int64_t oldest = layer.window ? std::max<int64_t>(0, position - layer.window + 1) : 0;
    for (int64_t chunk = oldest / CHUNK * CHUNK; chunk < stop; chunk += CHUNK) {
        int64_t keys = std::min(CHUNK, (stop - chunk + BLOCK - 1) / BLOCK * BLOCK);
        for (int64_t h = 0; h < piece.heads; h++)
            attend_chunk(it, desk, piece, piece.head + h, chunk, keys);
    }
    for (int64_t h = 0; h < piece.heads; h++)
        for (int64_t line = 0; line < lines; line++) {
            float* to = it.out + (token + line / group) * it.out_stride +
                        ((piece.head + h) * group + line % group) * dim;
            const float* from = desk.total + (h * lines + line) * dim;
            F16 weight = set(desk.weight[h * lines + line]);
            for (int64_t d = 0; d < dim; d += LANES) store(to + d, load(from + d) / weight);
        }
}

// A member's share of all rows and heads.
inline void attend(Team& team, const Attend& it, const Desk& desk) {
    const Step& step = it.step;
    int64_t heads = it.layer.kv_heads, row = 0, before = 0, all = 0;
    // A block has the heads of a token side by side: with enough rows each reads it in one go.
    bool plenty = step.rows >= 4 * team.active();
    auto together = [&](int64_t r) { return plenty && step.counts[r] == 1 ? heads : 1; };
    auto pieces = [&](int64_t r) {
        return (step.counts[r] + QUERIES - 1) / QUERIES * (heads / together(r));
    };
    for (int64_t r = 0; r < step.rows; r++) all += pieces(r);
    int64_t place;
    while ((place = team.take(1)) < all) {
        // Pieces are handed out in order, so that each member walks the rows once.
        while (place >= before + pieces(row)) before += pieces(row++);
        int64_t parts = heads / together(row), begin = (place - before) / parts * QUERIES;
        attend_piece(it, desk, {row, begin, std::min(QUERIES, step.counts[row] - begin),
                                (place - before) % parts, together(row)});
    }
}

}  // namespace TANDEM_ISA
