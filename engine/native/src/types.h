// What Python and the kernels tell each other. engine/native/types.py mirrors these layouts.
#pragma once
#include <cstdint>

namespace tandem {

constexpr int64_t PANEL = 16;  // output rows that are packed together
constexpr int64_t BLOCK = 16;  // tokens of a KV block

enum Kind : int64_t { INT8 = 0, INT4 = 1 };
enum KvKind : int64_t { KV_FP32 = 0, KV_BF16 = 1, KV_INT8 = 2 };
enum Activation : int64_t { SILU = 0, GELU_TANH = 1 };

// Weights of a linear layer, in panels of 16 output rows; rows and columns are padded with zeros.
struct Matrix {
    int64_t kind;
    int64_t rows, columns;
    int64_t group;        // int8: columns of a rotated block; int4: columns that share a scale
    const uint8_t* codes;
    const float* scales;  // int8: one a row
    const int32_t* sums;  // int8: of each row's codes
    const float* bias;    // one a row, or null
};

// Rows of one layer in parts, each packed alone; the parts have the same columns.
struct Linear {
    int64_t count;
    const Matrix* parts;
};

struct Cache {
    int64_t kind;
    void* keys;  // of this layer: (blocks, BLOCK, kv_heads, dim)
    void* values;
    float* key_scales;  // int8: (blocks, BLOCK, kv_heads)
    float* value_scales;
};

struct Attention {
    const float* norm;
    float eps, scale;
    Linear qkv, output;
    Cache cache;
    int64_t heads, kv_heads, dim;
    const float* query_norm;  // over one head, or null
    const float* key_norm;
    float head_eps, softcap;  // softcap 0: none
    int64_t window;           // 0: none
};

struct Mlp {
    const float* norm;
    float eps;
    int32_t activation;
    Linear gate_up, down;
};

// The tokens of one step, sequence after sequence.
struct Step {
    int64_t tokens, hidden, rows;
    const int64_t* firsts;   // of each row: its first token in the step
    const int64_t* starts;   // and that token's position
    const int64_t* counts;   // and how many tokens it has
    const int64_t* offsets;  // and where its block table begins in `tables`
    const int64_t* tables;
    const int64_t* slots;    // of each token: block * BLOCK + offset
    const float* cosines;    // (tokens, rotated)
    const float* sines;      // the same, signed
    int64_t rotated;
};

}  // namespace tandem
