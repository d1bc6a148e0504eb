// The two halves of a decoder layer, each one pass of the team.
#pragma once
#include "attend.h"
#include "matmul.h"

namespace TANDEM_ISA {

// How a half's result comes back: added to `x`, or alone in `out` (a rank's part of a sum).
struct Result {
    float* x;
    float* out;
    Output output(int64_t hidden) const {
        return out ? Output{out, hidden, false} : Output{x, hidden, true};
    }
};

// Root mean square normalisation (arXiv 1910.07467). `from` and `to` may be the same.
inline void normalise(const float* from, const float* weight, float eps, int64_t width, float* to) {
    F16 squares = set(0.0f);
    int64_t whole = width / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
        F16 x = load(from + i);
        squares = fma(x, x, squares);
    }
    float rest = 0.0f;
    for (int64_t i = whole; i < width; i++) rest += from[i] * from[i];
    float mean = (sum(squares) + rest) / static_cast<float>(width);
    float scale = 1.0f / std::sqrt(mean + eps);
    for (int64_t i = 0; i < whole; i += LANES)
        store(to + i, load(from + i) * set(scale) * load(weight + i));
    for (int64_t i = whole; i < width; i++) to[i] = from[i] * scale * weight[i];
}

// Pairs dimension i with i + rotated / 2 (arXiv 2104.09864).
inline void turn(float* head, const float* cosine, const float* sine, int64_t rotated) {
    int64_t half = rotated / 2;
    for (int64_t i = 0; i < half; i++) {
        float a = head[i], b = head[i + half];
        head[i] = a * cosine[i] + b * sine[i];
        head[i + half] = b * cosine[i + half] + a * sine[i + half];
    }
}

inline uint16_t to_bf16(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    if (x != x) return 0x7FC0;
    return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

inline void keep(const Attention& layer, void* pages, float* scales, int64_t slot, int64_t head,
                 const float* from) {
    int64_t dim = layer.dim, at = (slot * layer.kv_heads + head) * dim;
    if (layer.cache.kind == KV_FP32) {
        std::memcpy(static_cast<float*>(pages) + at, from, dim * sizeof(float));
    } else if (layer.cache.kind == KV_BF16) {
        auto* to = static_cast<uint16_t*>(pages) + at;
        for (int64_t d = 0; d < dim; d++) to[d] = to_bf16(from[d]);
    } else {
        auto* to = static_cast<int8_t*>(pages) + at;
        float scale = peak_of(from, dim) / 127.0f, inverse = scale > 0 ? 1.0f / scale : 0.0f;
        for (int64_t d = 0; d < dim; d += LANES)
            store_bytes(to + d, to_int(max(min(round(load(from + d) * set(inverse)), set(127.0f)),
                                           set(-127.0f))));
        scales[slot * layer.kv_heads + head] = scale;
    }
}

// Norms and angles of one token's queries and keys; its key and value go to the cache.
inline void place_token(const Attention& layer, const Step& step, int64_t token, float* mixed) {
    const float* cosine = step.cosines + token * step.rotated;
    const float* sine = step.sines + token * step.rotated;
    int64_t dim = layer.dim;
    for (int64_t head = 0; head < layer.heads + layer.kv_heads; head++) {
        float* at = mixed + head * dim;
        const float* norm = head < layer.heads ? layer.query_norm : layer.key_norm;
        if (norm) normalise(at, norm, layer.head_eps, dim, at);
        turn(at, cosine, sine, step.rotated);
    }
    float* keys = mixed + layer.heads * dim;
    float* values = keys + layer.kv_heads * dim;
    for (int64_t head = 0; head < layer.kv_heads; head++) {
        keep(layer, layer.cache.keys, layer.cache.key_scales, step.slots[token], head,
             keys + head * dim);
        keep(layer, layer.cache.values, layer.cache.value_scales, step.slots[token], head,
             values + head * dim);
    }
}

inline int64_t roomy(int64_t width) { return (width + 63) / 64 * 64; }

inline int64_t rows_of(const Linear& linear) {
    int64_t rows = 0;
    for (int64_t i = 0; i < linear.count; i++) rows += linear.parts[i].rows;
    return rows;
}

// A member's share of the first stage of a half: all tokens of `x`, normalised, as codes.
inline void take_in(Team& team, const Step& step, const float* x, const float* norm, float eps,
                    const Linear& first, const Codes& in, float* own) {
    int64_t token;
    while ((token = team.take(1)) < step.tokens) {
        normalise(x + token * step.hidden, norm, eps, step.hidden, own);
        quantize(own, first.parts[0], in, token);
    }
}

inline std::vector<Bench> make_benches(Arena& arena, const Linear& linear, int64_t tokens, int members) {
    std::vector<Bench> benches;
    for (int member = 0; member < members; member++)
        benches.push_back(make_bench(arena, linear, tokens));
    return benches;
}

struct AttentionPass {
    Team& team;
    const Attention& layer;
    const Step& step;
    Result result;
    Codes in, back;
    float *mixed, *attended, *row;
    int64_t mixed_stride, attended_stride, row_stride;
    std::vector<Desk> desks;
    std::vector<Bench> ins, backs;

    AttentionPass(Team& crew, Arena& arena, const Attention& which, const Step& what, Result where)
        : team(crew), layer(which), step(what), result(where) {
        in = make_codes(arena, layer.qkv.parts[0], step.tokens);
        back = make_codes(arena, layer.output.parts[0], step.tokens);
        mixed_stride = roomy(rows_of(layer.qkv));
        attended_stride = back.stride;
        row_stride = in.stride;
        mixed = arena.take<float>(step.tokens * mixed_stride);
        attended = arena.take<float>(step.tokens * attended_stride);
        row = arena.take<float>(crew.size() * row_stride);
        for (int member = 0; member < crew.size(); member++)
            desks.push_back(make_desk(arena, layer));
        ins = make_benches(arena, layer.qkv, step.tokens, crew.size());
        backs = make_benches(arena, layer.output, step.tokens, crew.size());
    }

    void operator()(int member) {
        auto me = static_cast<size_t>(member);
        int64_t token;
        float* own = row + member * row_stride;
        take_in(team, step, result.x, layer.norm, layer.eps, layer.qkv, in, own);
        team.meet();
        multiply(team, layer.qkv, in, ins[me], {mixed, mixed_stride, false});
        team.meet();
        while ((token = team.take(1)) < step.tokens)
            place_token(layer, step, token, mixed + token * mixed_stride);
        team.meet();
        attend(team, {layer, step, mixed, mixed_stride, attended, attended_stride},
               desks[me]);
        team.meet();
        while ((token = team.take(1)) < step.tokens)
            quantize(attended + token * attended_stride, layer.output.parts[0], back, token);
        team.meet();
        multiply(team, layer.output, back, backs[me], result.output(step.hidden));
    }
};

struct MlpPass {
    Team& team;
    const Mlp& layer;
    const Step& step;
    Result result;
    Codes in, back;
    float *wide, *row;
    int64_t wide_stride, row_stride, width;
    std::vector<Bench> ins, backs;

    MlpPass(Team& crew, Arena& arena, const Mlp& which, const Step& what, Result where)
        : team(crew), layer(which), step(what), result(where) {
        in = make_codes(arena, layer.gate_up.parts[0], step.tokens);
        back = make_codes(arena, layer.down.parts[0], step.tokens);
        width = layer.down.parts[0].columns;
        wide_stride = roomy(rows_of(layer.gate_up));
        row_stride = std::max(in.stride, back.stride);
        wide = arena.take<float>(step.tokens * wide_stride);
        row = arena.take<float>(crew.size() * row_stride);
        ins = make_benches(arena, layer.gate_up, step.tokens, crew.size());
        backs = make_benches(arena, layer.down, step.tokens, crew.size());
    }

    void activate(const float* from, float* to) const {
        int64_t i = 0;
        for (; i + LANES <= width; i += LANES) {
            F16 gate = load(from + i), up = load(from + width + i);
            store(to + i, (layer.activation == SILU ? silu(gate) : gelu(gate)) * up);
        }
        if (i == width) return;
        float gate[LANES] = {}, up[LANES] = {}, both[LANES];
        std::copy(from + i, from + width, gate);
        std::copy(from + width + i, from + 2 * width, up);
        F16 opened = layer.activation == SILU ? silu(load(gate)) : gelu(load(gate));
        store(both, opened * load(up));
        std::copy(both, both + (width - i), to + i);
    }

    void operator()(int member) {
        auto me = static_cast<size_t>(member);
        int64_t token;
        float* own = row + member * row_stride;
        take_in(team, step, result.x, layer.norm, layer.eps, layer.gate_up, in, own);
        team.meet();
        multiply(team, layer.gate_up, in, ins[me], {wide, wide_stride, false});
        team.meet();
        while ((token = team.take(1)) < step.tokens) {
            activate(wide + token * wide_stride, own);
            quantize(own, layer.down.parts[0], back, token);
        }
        team.meet();
        multiply(team, layer.down, back, backs[me], result.output(step.hidden));
    }
};

// A linear layer alone.
struct LinearPass {
    Team& team;
    const Linear& linear;
    const float* x;
    int64_t tokens;
    float* out;
    Codes in;
    float* row;
    std::vector<Bench> benches;

    LinearPass(Team& crew, Arena& arena, const Linear& which, const float* from, int64_t count,
               float* to)
        : team(crew), linear(which), x(from), tokens(count), out(to) {
        in = make_codes(arena, linear.parts[0], tokens);
        row = arena.take<float>(crew.size() * in.stride);
        benches = make_benches(arena, linear, tokens, crew.size());
    }

    void operator()(int member) {
        auto me = static_cast<size_t>(member);
        int64_t token, columns = in.columns;
        float* own = row + member * in.stride;
        while ((token = team.take(1)) < tokens) {
            std::copy(x + token * columns, x + (token + 1) * columns, own);
            quantize(own, linear.parts[0], in, token);
        }
        team.meet();
        multiply(team, linear, in, benches[me], {out, rows_of(linear), false});
    }
};

}  // namespace TANDEM_ISA
