// What each instruction set offers.
#pragma once
#include "arena.h"
#include "team.h"
#include "types.h"

namespace tandem {

struct Kernels {
    void (*linear)(Team&, Arena&, const Linear&, const float* x, int64_t tokens, float* out);
    void (*attention)(Team&, Arena&, const Attention&, const Step&, float* x, float* out);
    void (*mlp)(Team&, Arena&, const Mlp&, const Step&, float* x, float* out);
};

}  // namespace tandem

namespace avx2 {
tandem::Kernels kernels();
}
namespace vnni {
tandem::Kernels kernels();
}
