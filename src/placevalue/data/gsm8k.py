"""GSM8K's training problems; what follows `####` in a published solution is its answer."""

import json

from placevalue.data.files import read_bundled
from placevalue.data.problem import Problem

FILE = "gsm8k/train.jsonl.gz"


def read_gsm8k() -> list[Problem]:
    """The 7,473 training problems, in their published order."""
    rows = [json.loads(line) for line in read_bundled(FILE).splitlines()]
    return [
        Problem(f"gsm8k:{index}", row["question"].strip(), row["answer"].rpartition("####")[2].strip().replace(",", ""))
        for index, row in enumerate(rows)
    ]
