"""The engine's own kernels in C++, where they are compiled and the processor runs them.

`src/` holds them, `build` compiles them, `library` loads and checks them, `matrices` packs weights,
`layers` computes whole decoder layers.
"""
