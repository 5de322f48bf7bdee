"""GSM8K's training problems. The answer is what follows `####` in a published solution."""

import gzip
import json
from pathlib import Path

from placevalue.common.errors import DataError
from placevalue.common.files import file_hash
from placevalue.data.problem import Problem

FILE = Path(__file__).with_name("train.jsonl.gz")
SHA256 = "047ae96fb3025b18b8cfa89c4f9e9c7cd5120906864d58c3f93c91c495da6449"


def read_gsm8k() -> list[Problem]:
    """The 7,473 training problems, in their published order."""
    if file_hash(FILE) != SHA256:
        raise DataError(f"{FILE} is damaged: expected the sha256 {SHA256}; restore the file with git")
    rows = [json.loads(line) for line in gzip.decompress(FILE.read_bytes()).splitlines()]
    return [
        Problem(f"gsm8k:{index}", row["question"].strip(), row["answer"].rpartition("####")[2].strip().replace(",", ""))
        for index, row in enumerate(rows)
    ]
