// The functions that Python calls. Each returns 0, or -1 when there was no memory.
#include <sys/mman.h>

#include <cstring>
#include <new>

#include "kernels.h"

namespace {

tandem::Team team;
tandem::Arena arena;
std::mutex turn;
tandem::Kernels chosen;

template <class Call>
int guarded(Call call) {
    std::lock_guard<std::mutex> held(turn);
    try {
        arena.reset();
        call();
        return 0;
    } catch (const std::bad_alloc&) {
        return -1;
    }
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// Takes the kernels of an instruction set; 0 where this processor lacks it.
int tandem_choose(const char* name) {
    __builtin_cpu_init();
    if (!std::strcmp(name, "avx512_vnni")) {
        if (!__builtin_cpu_supports("avx512vnni") || !__builtin_cpu_supports("avx512bw") ||
            !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
            return 0;
        chosen = vnni::kernels();
        return 1;
    }
    if (std::strcmp(name, "avx2") || !__builtin_cpu_supports("avx2") ||
        !__builtin_cpu_supports("fma"))
        return 0;
    chosen = avx2::kernels();
    return 1;
}

void tandem_threads(int count) {
    std::lock_guard<std::mutex> held(turn);
    team.resize(count);
}

// Of the threads, those that work at the moment.
int tandem_active() { return team.active(); }

// int8 codes (rows, columns) in panels of 16 rows, each in groups of four columns.
void tandem_pack_int8(const int8_t* codes, int64_t rows, int64_t columns, int8_t* panels,
                      int32_t* sums) {
    int64_t fours = (columns + 3) / 4;
    for (int64_t row = 0; row < (rows + 15) / 16 * 16; row++) {
        int8_t* to = panels + row / 16 * fours * 64 + row % 16 * 4;
        int32_t sum = 0;
        for (int64_t k = 0; k < fours * 4; k++) {
            int8_t code = row < rows && k < columns ? codes[row * columns + k] : int8_t{0};
            to[k / 4 * 64 + k % 4] = code;
            sum += code;
        }
        sums[row] = sum;
    }
}

// Codes 0..15 (rows, columns), a whole number of 32 columns, two to a byte.
void tandem_pack_int4(const uint8_t* codes, int64_t rows, int64_t columns, uint8_t* panels) {
    for (int64_t row = 0; row < (rows + 15) / 16 * 16; row++)
        for (int64_t k = 0; k < columns; k += 8)
            for (int64_t i = 0; i < 4; i++) {
                const uint8_t* from = codes + row * columns + k + i;
                uint8_t low = row < rows ? from[0] : 8, high = row < rows ? from[4] : 8;
                panels[(row / 16 * (columns / 8) + k / 8) * 64 + row % 16 * 4 + i] =
                    static_cast<uint8_t>(low | high << 4);
            }
}

// Asks for large pages, which spare the walk through the page tables.
void tandem_advise(void* start, int64_t bytes) {
    constexpr uintptr_t page = 4096;
    uintptr_t first = (reinterpret_cast<uintptr_t>(start) + page - 1) / page * page;
    uintptr_t last = (reinterpret_cast<uintptr_t>(start) + static_cast<uintptr_t>(bytes)) / page * page;
    if (last > first) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

int tandem_linear(const tandem::Linear* which, const float* x, int64_t tokens, float* out) {
    return guarded([&] { chosen.linear(team, arena, *which, x, tokens, out); });
}

// `out` null: the result is added to `x`.
int tandem_attention(const tandem::Attention* layer, const tandem::Step* step, float* x,
                     float* out) {
    return guarded([&] { chosen.attention(team, arena, *layer, *step, x, out); });
}

int tandem_mlp(const tandem::Mlp* layer, const tandem::Step* step, float* x, float* out) {
    return guarded([&] { chosen.mlp(team, arena, *layer, *step, x, out); });
}

// Both halves, added to `x`.
int tandem_layer(const tandem::Attention* attention, const tandem::Mlp* mlp,
                 const tandem::Step* step, float* x) {
    return guarded([&] {
        chosen.attention(team, arena, *attention, *step, x, nullptr);
        arena.reset();
        chosen.mlp(team, arena, *mlp, *step, x, nullptr);
    });
}

}
#pragma GCC visibility pop
