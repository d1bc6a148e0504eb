"""One rank's slices of a checkpoint, made ready for its layers."""

from collections.abc import Sequence

from torch import Tensor

from engine.checkpoint.tensors import Layout, layer_tensor
from engine.kernels import Linear, LinearFactory
from engine.layers import RMSNorm
from engine.loader import WeightSource
from engine.models.packing import pack_stack, pack_table
from engine.spans import Span


class RankWeights:
    """Reads by canonical names and counts the bytes of everything it hands out ready-made.

    Every weight comes into being with its value, and each tensor is read once.
    """

    def __init__(
        self,
        source: WeightSource,
        layout: Layout,
        linear: LinearFactory,
        head: LinearFactory | None = None,
    ) -> None:
        """`head` packs the output head, where it is not packed as everything else."""
        self._source = source
        self._layout = layout
        self._linear = linear
        self._head = head or linear
        self.nbytes = 0

    def table(self, name: str, span: Span) -> Tensor:
        """Rows of a matrix that is used as it is, float32 (span.size, columns)."""
        table = self._source.rows(name, span)
        self.nbytes += table.nbytes
        return table

    def pack_matrix(self, name: str, span: Span) -> Linear:
        """An output head over rows of a matrix that belongs to no layer."""
        return self._counted(pack_stack(self._head, self._source, [name], rows=span))

    def pack_rows(
        self, layer: int, parts: Sequence[str], span: Span, bias: Tensor | None = None
    ) -> Linear:
        """One linear layer over the same rows of several matrices, one below the other."""
        names = [layer_tensor(layer, f"{part}.weight") for part in parts]
        return self._counted(pack_stack(self._linear, self._source, names, rows=span, bias=bias))

    def pack_columns(self, layer: int, part: str, span: Span, bias: Tensor | None = None) -> Linear:
        """A linear layer over columns of a matrix."""
        names = [layer_tensor(layer, f"{part}.weight")]
        return self._counted(pack_stack(self._linear, self._source, names, columns=span, bias=bias))

    def norm(self, name: str, eps: float) -> RMSNorm:
        weight = self._source.vector(name) + self._layout.norm_offset
        self.nbytes += weight.nbytes
        return RMSNorm(weight, eps)

    def rows(self, layer: int, part: str, span: Span) -> Tensor:
        """Rows of `part`'s matrix, float32 (span.size, columns), not yet packed."""
        return self._source.rows(layer_tensor(layer, f"{part}.weight"), span)

    def columns(self, layer: int, part: str, span: Span) -> Tensor:
        """Columns of `part`'s matrix, float32 (rows, span.size), not yet packed."""
        return self._source.columns(layer_tensor(layer, f"{part}.weight"), span)

    def bias(self, layer: int, part: str, span: Span | None = None) -> Tensor:
        """`part`'s bias, float32; only the entries of `span`, where one is given."""
        bias = self._source.vector(layer_tensor(layer, f"{part}.bias"))
        return bias if span is None else bias[span.start : span.stop].clone()

    def pack(self, weight: Tensor, bias: Tensor | None = None) -> Linear:
        return self._counted(self._linear(weight, bias))

    def _counted(self, linear: Linear) -> Linear:
        self.nbytes += linear.nbytes
        return linear

    def pack_table(self, table: Tensor) -> Linear:
        """An output head over a table already handed out: the same memory, if its kernel can."""
        linear = pack_table(self._head, table)
        if getattr(linear, "weight", None) is not table:
            self.nbytes += linear.nbytes
        return linear

    def in_halves(self, rows: Tensor, head_dim: int, turned: Span) -> Tensor:
        """Rows (or biases) of whole heads with their dimensions `turned` paired as halves.

        What is stored interleaved has the pair (i, i + turned.size / 2) in places 2i and 2i + 1.
        """
        interleaved = self._layout.rotary == "interleaved"
        return unpermute(rows, head_dim, turned) if interleaved else rows


def unpermute(rows: Tensor, head_dim: int, turned: Span | None = None) -> Tensor:
    """From interleaved rotary order to two halves, in the dimensions `turned` of each head."""
    turned = turned or Span(0, head_dim)
    heads = rows.reshape(-1, head_dim, *rows.shape[1:]).clone()
    part = heads[:, turned.start : turned.stop]
    pairs = part.reshape(len(heads), turned.size // 2, 2, *rows.shape[1:])
    heads[:, turned.start : turned.stop] = pairs.transpose(1, 2).reshape(part.shape)
    return heads.reshape(rows.shape)
