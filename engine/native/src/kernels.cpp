// Compiled once for each instruction set, with TANDEM_ISA set to its name.
#include "kernels.h"

#include "layer.h"

namespace TANDEM_ISA {
namespace {

template <class Pass>
void run(Team& team, Pass& pass) {
    team.run([](void* context, int member) { (*static_cast<Pass*>(context))(member); }, &pass);
}

void linear(Team& team, Arena& arena, const Linear& which, const float* x, int64_t tokens,
            float* out) {
    LinearPass pass(team, arena, which, x, tokens, out);
    run(team, pass);
}

void attention(Team& team, Arena& arena, const Attention& layer, const Step& step, float* x,
               float* out) {
    AttentionPass pass(team, arena, layer, step, {x, out});
    run(team, pass);
}

void mlp(Team& team, Arena& arena, const Mlp& layer, const Step& step, float* x, float* out) {
    MlpPass pass(team, arena, layer, step, {x, out});
    run(team, pass);
}

}  // namespace

Kernels kernels() { return {linear, attention, mlp}; }

}  // namespace TANDEM_ISA
