"""Every fault that `make faults` injects is withstood; repeated faults are injected a few times here."""

import pytest

from tools.faults.__main__ import FAILED, SECTIONS, read_rows
from tools.faults.bench import Bench

QUICK = (
    "a file of the newest checkpoint is cut off",
    "the weights of a finished run are cut off: `train`",
    "a bit is flipped in weights: `predict`",
    "`report --out`: the disk is full",
    "`train` is killed inside the writing of a checkpoint",
)
"""Of the faults that need training, those that the quick tests inject too."""


def faults():
    for section, found in SECTIONS.items():
        for name, fault in found.items():
            quick = name in QUICK or section in ("Files of others", "Input of others")
            yield pytest.param(fault, id=name, marks=[] if quick else pytest.mark.slow)


@pytest.mark.parametrize("fault", faults())
def test_it_is_withstood(fault, tmp_path):
    assert fault(Bench(tmp_path / "place", all=False))


def test_names_are_of_one_fault_and_the_page_lists_all():
    names = [name for faults in SECTIONS.values() for name in faults]
    assert len(set(names)) == len(names) > 40 and set(QUICK) <= set(names)
    rows = read_rows()
    rows.pop("fault")
    assert set(rows) == set(names), "`make faults` writes every row"
    assert not [name for name, outcome in rows.items() if outcome.startswith(FAILED)]
