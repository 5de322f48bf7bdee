"""Damaged checkpoints and weights: a run ends with the weights it would have had, or says why not."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from placevalue.experiments.predict import predict
from tools.faults.bench import Bench, cut, flip, run_verb, weights

FILES = ("model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json", "checksums.json")


def _damaged_checkpoint(bench: Bench, spoil: Callable[[Path], object]) -> str:
    """Each file of the newest checkpoint in turn."""
    stopped, same = bench.stop("stopped", after=5), bench.some(FILES)
    for name in same:
        run = shutil.copytree(stopped, bench.place / name)
        spoil(run / "checkpoints" / "checkpoint-4" / name)
        bench.train(name, resume=True)
        assert weights(run) == bench.weights()
        assert (run / "checkpoints" / "set-aside-checkpoint-4-1").is_dir() or name == "checksums.json"
    return f"set aside; continued from the one before; {len(same)} of {len(same)} ended with the same weights"


def missing_file(bench: Bench) -> str:
    """A file of the newest checkpoint is missing; that its list is missing says that it is not ours."""
    return _damaged_checkpoint(bench, lambda path: path.unlink() if path.name != "checksums.json" else cut(path))


def cut_file(bench: Bench) -> str:
    """A file of the newest checkpoint is cut off."""
    return _damaged_checkpoint(bench, cut)


def flipped_bit(bench: Bench) -> str:
    """A bit is flipped in a file of the newest checkpoint."""
    return _damaged_checkpoint(bench, flip)


def strange_checkpoint(bench: Bench) -> str:
    """A checkpoint that the run did not write lies among its own."""
    run = bench.stop("stopped", after=5)
    (run / "checkpoints" / "checkpoint-5").mkdir()
    (run / "checkpoints" / "checkpoint-5" / "model.safetensors").touch()
    status, shown = run_verb("train", bench.recipe_file(), "--out", run, "--resume")
    assert status == 1 and "checkpoint-5 is not a checkpoint of this run" in shown
    return "refused, and named"


def every_checkpoint(bench: Bench) -> str:
    """No checkpoint is left whole."""
    run = bench.stop("stopped", after=5)
    for path in run.glob("checkpoints/*/optimizer.pt"):
        flip(path)
    bench.train("stopped", resume=True)
    assert weights(run) == bench.weights()
    return "all set aside; trained from the beginning to the same weights"


EARLY: dict[str, Any] = dict(
    select="dev-loss", learning_rate=1.0, schedule="constant", warmup_steps=0, checkpoint_every=1, keep_checkpoints=1
)
"""With these settings training makes a model worse, so that the best checkpoint is the first."""


def best_checkpoint(bench: Bench) -> str:
    """The best checkpoint on dev is damaged, and the newest is whole."""
    whole, run = bench.train("whole", **EARLY), bench.stop("stopped", after=5, **EARLY)
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["checkpoint-1", "checkpoint-4"]
    flip(run / "checkpoints" / "checkpoint-1" / "model.safetensors")
    bench.train("stopped", resume=True, **EARLY)
    assert weights(run) == weights(whole) and bench.record(run).selected == bench.record(whole).selected
    return "set aside, and the newest with it; trained again to the same weights"


def moved_run(bench: Bench) -> str:
    """The folder of a run moves while it is stopped, and another run takes its place."""
    whole = bench.train("whole", **EARLY)
    moved = bench.stop("stopped", after=5, **EARLY).rename(bench.place / "moved")
    bench.stop("stopped", after=5, **(EARLY | {"learning_rate": 1e-3}))
    bench.train("moved", resume=True, **EARLY)
    assert weights(moved) == weights(whole)
    return "continued; same weights"


def older_run(bench: Bench) -> str:
    """A run that version 0.1.0 began, without checksums, stopped with its newest checkpoint cut off."""
    stopped, spoilt = bench.stop("stopped", after=5), bench.some(FILES[:-1])
    begun = json.loads((stopped / "run.json").read_text())
    del begun["schema"]
    (stopped / "run.json").write_text(json.dumps(begun))
    for path in stopped.glob("checkpoints/*/checksums.json"):
        path.unlink()
    for name in spoilt:
        run = shutil.copytree(stopped, bench.place / name)
        cut(run / "checkpoints" / "checkpoint-4" / name)
        assert weights(bench.train(name, resume=True)) == bench.weights()
    return f"set aside; continued from the one before; {len(spoilt)} of {len(spoilt)} ended with the same weights"


def final_weights(bench: Bench) -> str:
    """The weights of a finished run are cut off, and its checkpoints are there."""
    run = bench.train("run")
    cut(run / "model.safetensors")
    bench.train("run")
    assert weights(run) == bench.weights()
    return "put back from the last checkpoint"


def only_weights(bench: Bench) -> str:
    """The same, and no checkpoint is left."""
    run = bench.train("run")
    cut(run / "model.safetensors")
    shutil.rmtree(run / "checkpoints")
    words = ("train", bench.recipe_file(), "--out", run)
    status, shown = run_verb(*words)
    assert status == 1 and "model.safetensors does not fit its checksum" in shown and "--resume" in shown, shown
    assert run_verb(*words, "--resume")[0] == 0 and weights(run) == bench.weights()
    return "refused, and named; with `--resume` trained again to the same weights"


def reproduced_weights(bench: Bench) -> str:
    """The weights of a finished run of an experiment are cut off before it answered."""
    words = ("reproduce", bench.recipe_file(), "--out", bench.place / "out")
    assert run_verb(*words)[0] == 0
    run = bench.place / "out" / "agg-aux-1"
    answers = (run / "predictions" / "predictions.jsonl").read_bytes()
    shutil.rmtree(run / "predictions")
    cut(run / "model.safetensors")
    status, shown = run_verb(*words)
    assert status == 0, shown
    assert weights(run) == bench.weights() and (run / "predictions" / "predictions.jsonl").read_bytes() == answers
    assert (bench.place / "out" / "stale" / "agg-aux-1-1").is_dir()
    return "moved to `stale/`; trained and answered again, to the same predictions"


def answered_weights(bench: Bench) -> str:
    """A bit is flipped in the weights of a finished run, or of one of its checkpoints."""
    run = bench.train("run")
    for folder in (run, run / "checkpoints" / "checkpoint-6"):
        flip(folder / "model.safetensors")
        status, shown = run_verb("predict", folder, "--data", bench.data, "--out", bench.place / "answers")
        assert status == 1 and "model.safetensors does not fit its checksum" in " ".join(shown.split()), shown
    assert predict(run / "checkpoints" / "checkpoint-4", [bench.data], bench.place / "answers").counts["problems"] == 24
    return "refused, and named"


FAULTS = {
    "a file of the newest checkpoint is missing": missing_file,
    "a file of the newest checkpoint is cut off": cut_file,
    "a bit is flipped in a file of the newest checkpoint": flipped_bit,
    "every checkpoint is damaged": every_checkpoint,
    "the best checkpoint on dev is damaged": best_checkpoint,
    "a checkpoint of another tool lies among those of a run": strange_checkpoint,
    "a stopped run is moved, and another takes its place": moved_run,
    "a run that version 0.1.0 began has a cut file in its newest checkpoint": older_run,
    "the weights of a finished run are cut off: `train`": final_weights,
    "the weights of a finished run are cut off, and no checkpoint is left": only_weights,
    "the weights of a finished run are cut off: `reproduce`": reproduced_weights,
    "a bit is flipped in weights: `predict`": answered_weights,
}
