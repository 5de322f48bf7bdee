"""Tables of numbers in little memory: most metrics are 0, 1 or missing, which fits into a byte."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placevalue.evaluation.metrics import Values

_MISSING = 255
_Block = tuple[NDArray[np.bool_], NDArray[np.uint8], Values]


class Packed:
    """Columns of floats, packed in blocks of rows: a column of small whole numbers and NaN takes a byte a row there.

    What comes out are the numbers that went in, exactly.
    """

    def __init__(self, blocks: Iterable[Values]) -> None:
        self.blocks: list[_Block] = [_pack(block) for block in blocks]
        self.starts = np.cumsum([0, *(len(small) for _, small, _ in self.blocks)])
        self.columns = len(self.blocks[0][0])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def take(self, rows: NDArray[np.signedinteger[Any]]) -> Values:
        """Some of the rows, in the order given: `(rows, columns)`."""
        found = np.empty((len(rows), self.columns))
        of_block = np.searchsorted(self.starts, rows, side="right") - 1
        order = np.argsort(of_block, kind="stable")
        borders = np.searchsorted(of_block[order], np.arange(len(self.blocks) + 1))
        for index in np.flatnonzero(np.diff(borders)):
            places = order[borders[index] : borders[index + 1]]
            found[places] = _unpack(self.blocks[index], rows[places] - self.starts[index])
        return found

    def column(self, index: int) -> Values:
        """One column of all rows."""
        parts = [
            _floats(small[:, whole[:index].sum()]) if whole[index] else rest[:, (~whole[:index]).sum()]
            for whole, small, rest in self.blocks
        ]
        return np.concatenate(parts)


def _pack(values: Values) -> _Block:
    missing = np.isnan(values)
    whole = (missing | ((values >= 0) & (values < _MISSING) & (values == np.floor(values)))).all(0)
    small = np.where(missing, _MISSING, values)[:, whole].astype(np.uint8)
    return whole, small, values[:, ~whole]


def _unpack(block: _Block, rows: NDArray[np.signedinteger[Any]]) -> Values:
    whole, small, rest = block
    found = np.empty((len(rows), len(whole)))
    found[:, whole], found[:, ~whole] = _floats(small[rows]), rest[rows]
    return found


def _floats(small: NDArray[np.uint8]) -> Values:
    return np.where(small == _MISSING, np.nan, small)
