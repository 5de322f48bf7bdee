"""Full disks: a limit on the length of files stands for one, so that the system itself refuses what is written."""

import json
import resource
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from transformers import modeling_utils

from placevalue.common.files import file_hash
from tools.faults.bench import Bench, in_child, pipe, run_verb, start_child, weights
from tools.faults.kills import spread, watch_files

QUICK = Path(__file__).parents[2] / "results" / "quick"
TINY = "placevalue-tiny"
MOMENTS = 8
LENGTHS = (200, 20_000, 1_000_000)
"""Bytes of the longest file that a disk takes: in turn, each kind of file of a run is the first that is too long."""
Words = tuple[object, ...]


def _allow(length: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (length, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def _watch(folder: Path, happens: Callable[[str], None]) -> None:
    """Call `happens` before every change of a file below a folder, also by torch and safetensors."""

    def announced(write: Callable[..., Any]) -> Callable[..., Any]:
        def call(content: Any, path: Any, **named: Any) -> Any:
            happens(f"write {path}")
            return write(content, path, **named)

        return call

    watch_files(folder, happens)
    torch.save, modeling_utils.safe_save_file = announced(torch.save), announced(modeling_utils.safe_save_file)


def _run_until_full(answer: Connection, words: Words, folder: Path, moment: int | None, length: int) -> None:
    """Run a verb on a disk that takes longer files only until a moment, the first if None; send what it said."""
    left = [moment]

    def happens(_what: str) -> None:
        if left[0] is not None:
            left[0] -= 1
            if left[0] < 0:
                _allow(length)

    if moment is None:
        _allow(length)
    else:
        _watch(folder, happens)
    try:
        answer.send(run_verb(*words))
    except BaseException:
        answer.send((-1, traceback.format_exc()))


def _list_moments(words: Words, folder: Path, log: Path) -> None:
    seen: list[str] = []
    _watch(folder, seen.append)
    assert run_verb(*words)[0] == 0
    log.write_text(json.dumps(seen))


def _stopped(words: Words, folder: Path, moment: int | None = None, length: int = 0) -> str:
    """What a verb says that stops at a full disk: which path could not be written, and what it needs."""
    ours, theirs = pipe()
    process = start_child(_run_until_full, theirs, words, folder, moment, length)
    theirs.close()
    status, shown = ours.recv()
    process.join()
    told = " ".join(shown.split())
    assert status == 1 and "Traceback" not in told, shown
    assert f"{folder}" in told and "could not be written: it needs" in told and "are free on its disk" in told, shown
    return told


def _moments(bench: Bench, words: Callable[[str], Words], few: int) -> list[int]:
    log = bench.place / "moments.json"
    assert in_child(_list_moments, words("counted"), bench.place / "counted", log) == 0
    writes = [at for at, what in enumerate(json.loads(log.read_text())) if what.startswith(("open", "write"))]
    return bench.some(spread(writes, MOMENTS), few)


def training(bench: Bench) -> str:
    """The disk is full from one moment of training on, or takes only short files from the beginning."""
    recipe = bench.recipe_file(keep_checkpoints=1)

    def words(name: str) -> Words:
        return ("train", recipe, "--resume", "--out", bench.place / name)

    cases: list[tuple[int | None, int]] = [(moment, 0) for moment in _moments(bench, words, 2)]
    cases += [(None, length) for length in bench.some(LENGTHS, 2)]
    for number, (moment, length) in enumerate(cases):
        run = bench.place / f"full-{number}"
        _stopped(words(run.name), run, moment, length)
        had = sorted(run.glob("checkpoints/checkpoint-*"))
        assert all((path / "checksums.json").exists() for path in had), "no part of a checkpoint takes up room"
        assert run_verb(*words(run.name))[0] == 0 and weights(run) == bench.weights(), (moment, length)
    return f"{len(cases)} of {len(cases)} named path and room; with room, they continued to the same weights"


def predicting(bench: Bench) -> str:
    """The disk is full from one moment of predicting on."""
    run = bench.train("run", max_steps=1)

    def words(name: str) -> Words:
        return ("predict", run, "--data", bench.data, "--beams", 1, "--batch-size", 4, "--out", bench.place / name)

    moments = _moments(bench, words, 3)
    for moment in moments:
        out = bench.place / f"full-{moment}"
        _stopped(words(out.name), out, moment)
        assert run_verb(*words(out.name))[0] == 0
        assert file_hash(out / "predictions.jsonl") == file_hash(bench.place / "counted" / "predictions.jsonl")
    return f"{len(moments)} of {len(moments)} named path and room; with room, they continued to the same predictions"


def experiments(bench: Bench) -> str:
    """The disk is full while an experiment runs."""
    recipe = bench.recipe_file(max_steps=2)

    def words(name: str) -> Words:
        return ("reproduce", recipe, "--out", bench.place / name)

    moments = _moments(bench, words, 2)
    for moment in moments:
        out = bench.place / f"full-{moment}"
        _stopped(words(out.name), out, moment)
        assert run_verb(*words(out.name))[0] == 0
        for answers in ("untouched-1/predictions/predictions.jsonl", "agg-aux-1/predictions/predictions.jsonl"):
            assert file_hash(out / answers) == file_hash(bench.place / "counted" / answers)
    return f"{len(moments)} of {len(moments)} named path and room; with room, they continued to the same predictions"


def sweeps(bench: Bench) -> str:
    """The disk is full while a sweep runs."""
    recipe = bench.recipe_file(max_steps=1)

    def words(name: str) -> Words:
        search = ("--method", "aux-soft", "--search", "training.ce_weight=0.5,0.6")
        return ("sweep", recipe, *search, "--out", bench.place / name)

    moments = _moments(bench, words, 2)
    for moment in moments:
        out = bench.place / f"full-{moment}"
        _stopped(words(out.name), out, moment)
        assert run_verb(*words(out.name))[0] == 0
        found = [json.loads((bench.place / name / "sweep.json").read_text()) for name in (out.name, "counted")]
        assert found[0]["trials"] == found[1]["trials"]
    return f"{len(moments)} of {len(moments)} named path and room; with room, they ended with the same scores"


def _kept(bench: Bench, name: str, *words: object) -> str:
    """A verb that writes one file keeps the one that it wrote before."""
    path = bench.place / name
    words = (*words, path)
    assert run_verb(*words)[0] == 0
    before = path.read_bytes()
    _stopped(words, path)
    assert path.read_bytes() == before and [each.name for each in bench.place.iterdir()] == [name]
    return "names path and room; the file from before is kept"


def score(bench: Bench) -> str:
    """A file of scores."""
    path = bench.place / "score.json"
    bench.place.mkdir()
    _stopped(("evaluate", QUICK / "digits-1" / "predictions", "--draws", 9, "--out", path), path)
    assert not list(bench.place.iterdir())
    return "names path and room; nothing is left behind"


def page(bench: Bench) -> str:
    """A page of results."""
    return _kept(bench, "index.html", "report", QUICK, "--out")


def picture(bench: Bench) -> str:
    """A picture of numbers."""
    return _kept(bench, "a.svg", "inspect", "the 12", "--model", TINY, "--svg")


def problems(bench: Bench) -> str:
    """Generated problems."""
    out = bench.place / "made"
    words = ("data", "fermat", "--size", 4, "--dev-size", 1, "--out", out)
    _stopped(words, out)
    assert run_verb(*words)[0] == 0
    return "names path and room; with room, it writes them"


FAULTS = {
    "`train` with `keep_checkpoints: 1`: the disk is full": training,
    "`predict`: the disk is full": predicting,
    "`reproduce`: the disk is full": experiments,
    "`sweep`: the disk is full": sweeps,
    "`evaluate --out`: the disk is full": score,
    "`report --out`: the disk is full": page,
    "`inspect --svg`: the disk is full": picture,
    "`data fermat`: the disk is full": problems,
}
