"""Storage formats of GGUF tensors: how many bytes hold how many weights."""

import msgspec


class BlockFormat(msgspec.Struct, frozen=True):
    name: str
    elements: int
    """Weights in one block; a row is a whole number of blocks."""
    bytes: int


FORMATS: dict[int, BlockFormat] = {
    0: BlockFormat("F32", 1, 4),
    1: BlockFormat("F16", 1, 2),
    2: BlockFormat("Q4_0", 32, 18),
    3: BlockFormat("Q4_1", 32, 20),
    6: BlockFormat("Q5_0", 32, 22),
    7: BlockFormat("Q5_1", 32, 24),
    8: BlockFormat("Q8_0", 32, 34),
    10: BlockFormat("Q2_K", 256, 84),
    11: BlockFormat("Q3_K", 256, 110),
    12: BlockFormat("Q4_K", 256, 144),
    13: BlockFormat("Q5_K", 256, 176),
    14: BlockFormat("Q6_K", 256, 210),
    20: BlockFormat("IQ4_NL", 32, 18),
    30: BlockFormat("BF16", 1, 2),
}
"""By ggml type id: what the loader can read."""

OTHER_FORMATS: dict[int, str] = {
    9: "Q8_1",
    15: "Q8_K",
    16: "IQ2_XXS",
    17: "IQ2_XS",
    18: "IQ3_XXS",
    19: "IQ1_S",
    21: "IQ3_S",
    22: "IQ2_S",
    23: "IQ4_XS",
    28: "F64",
    29: "IQ1_M",
    34: "TQ1_0",
    35: "TQ2_0",
    39: "MXFP4",
}
"""Known formats that the loader cannot read, for the message that says so."""
