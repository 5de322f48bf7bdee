"""Every fault that `make faults` injects is withstood; repeated faults are injected a few times here."""

import pytest

from tools.faults.__main__ import BEGIN, END, PAGE, SECTIONS
from tools.faults.bench import Bench

QUICK = (
    "a file of the newest checkpoint is cut off",
    "the weights of a finished run are cut off: `train`",
    "a bit is flipped in weights: `predict`",
    "`train` is killed inside the writing of a checkpoint",
)
"""Of the faults that need training, those that the quick tests inject too."""


def faults():
    for section, found in SECTIONS.items():
        for name, fault in found.items():
            quick = name in QUICK or section == "Files of others"
            yield pytest.param(fault, id=name, marks=[] if quick else pytest.mark.slow)


@pytest.mark.parametrize("fault", faults())
def test_it_is_withstood(fault, tmp_path):
    assert fault(Bench(tmp_path / "place", all=False))


def test_the_page_lists_known_faults_that_were_withstood():
    listed = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    known = {name for faults in SECTIONS.values() for name in faults}
    rows = [line.split(" | ")[0].removeprefix("| ") for line in listed.splitlines() if line.startswith("| ")]
    assert set(rows) - {"fault"} <= known and len(rows) > 10
    assert set(QUICK) <= {name for faults in SECTIONS.values() for name in faults}
    assert "not withstood" not in listed
