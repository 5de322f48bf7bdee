"""The command line: `python -m tools.mutants` plants bugs and records which of them no test notices."""

import argparse
import json
import os
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from placevalue.common.files import write_json
from tools.mutants.forks import FOUND, UNFINISHED, FastestFirst, Watch, export, in_forks, run_tests, warm_up
from tools.mutants.planting import Mutant, find_mutants

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).with_name("record.json")
ROOMS = {
    "src/placevalue/numbers": "tests/numbers",
    "src/placevalue/tokenizer": "tests/tokenizer",
    "src/placevalue/modeling": "tests/modeling",
    "src/placevalue/loss": "tests/loss",
    "src/placevalue/evaluation/statistics.py": "tests/evaluation/test_statistics.py",
}
"""Where bugs are planted, and the tests that should notice them."""
UNSEEN = "no test runs this line"
SPARE = 60.0
"""Seconds that tests may take beyond five times as long as without the bug."""
Json = dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """What a test file did without any bug."""

    lines: dict[str, list[int]]
    """The lines that it ran, by module."""
    seconds: dict[str, float]
    """How long each of its tests took."""


@dataclass(frozen=True)
class Outcome:
    """Whether the tests noticed a bug."""

    mutant: Mutant
    noticed: bool
    by: str
    """The first test that failed, or what else happened."""


def main(words: Sequence[str] | None = None) -> int:
    """Plant bugs in copies of the last commit; the exit status is 1 if a survivor has no answer."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description="Plant bugs that tests should notice.")
    parser.add_argument("--count", type=int, default=300, help="how many bugs (default: 300)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default: 1)")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (default: 2)")
    parser.add_argument("--again", action="store_true", help="only what survived, with all tests; keeps the score")
    parser.add_argument("--record", type=Path, default=RECORD, help="what to write (default: the committed record)")
    options = parser.parse_args(words)
    old = json.loads(options.record.read_text()) if options.record.is_file() else {"survivors": []}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = [Path(folder) / f"copy{job}" for job in range(options.jobs)]
        for copy in copies:
            commit = export(ROOT, copy)
        warm_up(copies[0])
        sources = read_sources(copies[0])
        mutants = [mutant for module, source in sources.items() for mutant in find_mutants(module, source)]
        if options.again:
            known = {name_of(entry) for entry in old["survivors"]}
            chosen = [mutant for mutant in mutants if (mutant.module, mutant.was, mutant.becomes) in known]
        else:
            chosen = choose(mutants, options.count, options.seed)
        record, outcomes = old, []
        for outcome in hunt(copies, sources, chosen, watch(copies), everywhere=options.again):
            outcomes.append(outcome)
            mutant, what = outcome.mutant, "noticed" if outcome.noticed else "NOT NOTICED"
            print(f"[{len(outcomes)}/{len(chosen)}] {what}, {outcome.by}")
            print(f"    {mutant.module}:{mutant.line}: {mutant.becomes}", flush=True)
            record = answered(old, outcomes) if options.again else score(old, outcomes, commit, options.seed)
            write_json(options.record, record)
    silent = [entry for entry in record["survivors"] if not entry["answer"]]
    print(f"{record['noticed']} of {record['planted']} noticed; {len(silent)} survivors have no test or reason yet")
    return 1 if silent else 0


def read_sources(copy: Path) -> dict[str, bytes]:
    """The modules in which bugs are planted."""
    found = dict[str, bytes]()
    for room in ROOMS:
        paths = [copy / room] if room.endswith(".py") else sorted((copy / room).glob("*.py"))
        found |= {path.relative_to(copy).as_posix(): path.read_bytes() for path in paths}
    return found


def choose(mutants: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """Some of the mutants, each in a place of its own; more of them begin with the same."""
    draw, places = random.Random(seed), dict[tuple[str, int, int], list[Mutant]]()
    for mutant in mutants:
        places.setdefault((mutant.module, mutant.start, mutant.end), []).append(mutant)
    order = list(places.values())
    draw.shuffle(order)
    return [draw.choice(place) for place in order[:count]]


def watch(copies: Sequence[Path]) -> dict[str, Seen]:
    """Run each test file alone, without any bug."""
    paths = [copies[0] / place for place in ROOMS.values()]
    files = [file for path in paths for file in (sorted(path.glob("test_*.py")) if path.is_dir() else [path])]
    names = [file.relative_to(copies[0]).as_posix() for file in files]
    seen = {}
    for index, (status, output) in in_forks(copies, [partial(_watch, name) for name in names], [3600.0] * len(names)):
        if status:
            raise SystemExit(f"{names[index]} fails without any bug:\n{output}")
        seen[names[index]] = Seen(**json.loads(output.partition(FOUND)[2]))
        print(f"{names[index]}: {len(seen[names[index]].seconds)} tests", flush=True)
    return seen


def _watch(file: str, copy: Path) -> int:
    return run_tests(copy, [file], Watch(copy / "src"))


def hunt(
    copies: Sequence[Path],
    sources: dict[str, bytes],
    mutants: Sequence[Mutant],
    seen: dict[str, Seen],
    everywhere: bool = False,
) -> Iterator[Outcome]:
    """Plant each mutant and run the test files of its room, or of all rooms, that run its lines."""
    tried, limits = [], []
    tasks: list[Callable[[Path], int]] = []
    for mutant in mutants:
        place = "" if everywhere else next(ROOMS[room] for room in ROOMS if mutant.module.startswith(room))
        first, last = mutant.lines
        files = [
            file
            for file, each in seen.items()
            if file.startswith(place) and any(first <= line <= last for line in each.lines.get(mutant.module, ()))
        ]
        if not files:
            yield Outcome(mutant, False, UNSEEN)
            continue
        seconds = {test: spent for file in files for test, spent in seen[file].seconds.items()}
        tried.append(mutant)
        tasks.append(partial(_try, len(tasks), mutant, sources, files, seconds))
        limits.append(SPARE + 5 * sum(seconds.values()))
    for index, (status, output) in in_forks(copies, tasks, limits):
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
        by = failed[1] if failed else {0: "all tests pass", UNFINISHED: "out of time"}.get(status, f"status {status}")
        yield Outcome(tried[index], status != 0, by)


def _try(number: int, mutant: Mutant, sources: dict[str, bytes], files: list[str], seconds: Json, copy: Path) -> int:
    """Plant a mutant, and undo the one before; every write has a time of its own, so that no cached bytecode fits."""
    for module, source in sources.items():
        path, planted = copy / module, module == mutant.module
        wanted = mutant.plant(source) if planted else source
        if path.read_bytes() != wanted:
            path.write_bytes(wanted)
            os.utime(path, (2 * number + planted,) * 2)
    return run_tests(copy, files, FastestFirst(seconds))


def name_of(entry: Json) -> tuple[str, str, str]:
    """What tells a survivor of a record from others, wherever its line has moved."""
    return entry["where"].partition(":")[0], entry["was"], entry["becomes"]


def score(old: Json, outcomes: Sequence[Outcome], commit: str, seed: int) -> Json:
    """The record of a run, with the answers that an older record has for the same survivors."""
    answers = {name_of(entry): entry["answer"] for entry in old["survivors"]}
    rooms = {}
    for room in ROOMS:
        here = [outcome.noticed for outcome in outcomes if outcome.mutant.module.startswith(room)]
        rooms[room] = {"planted": len(here), "noticed": sum(here)}
    totals = {name: sum(room[name] for room in rooms.values()) for name in ("planted", "noticed")}
    survivors = []
    for mutant in (outcome.mutant for outcome in outcomes if not outcome.noticed):
        entry = {"where": f"{mutant.module}:{mutant.line}", "was": mutant.was, "becomes": mutant.becomes}
        survivors.append(entry | {"answer": answers.get(name_of(entry), "")})
    return {"commit": commit, "seed": seed, **totals, "rooms": rooms, "survivors": survivors}


def answered(old: Json, outcomes: Sequence[Outcome]) -> Json:
    """The record with the tests that now notice what survived when it was made."""
    tests = {(each.mutant.module, each.mutant.was, each.mutant.becomes): each.by for each in outcomes if each.noticed}
    survivors = [entry | {"answer": tests.get(name_of(entry), entry["answer"])} for entry in old["survivors"]]
    return old | {"survivors": survivors}


if __name__ == "__main__":
    sys.exit(main())
