"""Input of others: recipes, data, folders and tokenizers that are wrong, or made to hang, flood or run something."""

import pickle
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

import placevalue as pv
from placevalue.common.errors import TokenizerError
from placevalue.common.hub import load_tokenizer, resolve_model
from tools.faults.bench import Bench, run_verb

TINY = "placevalue-tiny"
SECONDS = 30.0
"""The longest that a refusal may take on a busy machine; what these hang without one has no end."""
LEVELS = "bcdefghi"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("a" + LEVELS, LEVELS, strict=False)
)


def _refused(words: str, *verb: object) -> str:
    """The verb ends soon, with these words."""
    start = time.monotonic()
    status, shown = run_verb(*verb)
    assert status == 1 and words in " ".join(shown.split()), shown
    assert time.monotonic() - start < SECONDS
    return "refused, and named"


def _recipe(words: str, *changes: str) -> Callable[[Bench], str]:
    """A recipe whose keys have values that are refused."""
    return lambda bench: _refused(words, "train", bench.recipe_file(), "--out", bench.place / "x", *changes)


def _file(name: str, content: str, words: str, *verb: str) -> Callable[[Bench], str]:
    """A file that is refused by a verb that reads it."""

    def fault(bench: Bench) -> str:
        bench.place.mkdir(parents=True)
        (bench.place / name).write_text(content)
        return _refused(words, *verb, bench.place / name, *(["--dry-run"] if verb == ("train",) else []))

    return fault


def escapes(bench: Bench) -> str:
    """Control sequences of a terminal in data."""
    bench.place.mkdir(parents=True)
    (bench.place / "x.csv").write_text("question,answer\n\x1b[2J\x1b]0;mine\x07 1 and 2?,3\n")
    status, shown = run_verb("data", "show", bench.place / "x.csv")
    assert status == 0 and "\x1b" not in shown and "\x07" not in shown and r"\x1b[2J" in shown, shown
    return "shown as characters; the terminal does nothing"


def foreign_run(bench: Bench) -> str:
    """A record that is not one."""
    (bench.place / "x").mkdir(parents=True)
    (bench.place / "x" / "run.json").write_text("[]")
    return _refused(
        "expected a JSON object", "predict", bench.place / "x", "--data", bench.data, "--out", bench.place / "y"
    )


def _copied(bench: Bench) -> Path:
    return Path(shutil.copytree(resolve_model(TINY), bench.place / "model", copy_function=shutil.copyfile))


class _Runs:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def pickled(bench: Bench) -> str:
    """Weights that run code when they are unpickled."""
    model = _copied(bench)
    (model / "model.safetensors").unlink()
    (model / "pytorch_model.bin").write_bytes(pickle.dumps(_Runs(bench.place / "ran")))
    told = _refused("cannot load the folder", "predict", model, "--data", bench.data, "--out", bench.place / "y")
    assert not (bench.place / "ran").exists()
    return f"{told}; nothing is run"


def incomplete(bench: Bench) -> str:
    """Weights that miss a layer, which other libraries draw at random."""
    model = _copied(bench)
    kept = {name: each for name, each in load_file(model / "model.safetensors").items() if "block.1." not in name}
    save_file(kept, model / "model.safetensors", {"format": "pt"})
    (model / "train.json").unlink()  # its checksum would notice
    return _refused("drawn at random", "predict", model, "--data", bench.data, "--out", bench.place / "y")


def digits_taken(_: Bench) -> str:
    """A token that would swallow the digits of numbers."""
    tokenizer = pv.number_tokenizer(load_tokenizer(TINY), token="agg")
    tokenizer.add_tokens(["25"])
    try:
        pv.encode_questions(tokenizer, ["25?"], encoder_decoder=True)
    except TokenizerError as error:
        assert "match inside numbers" in str(error)
        return "refused, and named"
    raise AssertionError("25 became one token")


def lone_markers(_: Bench) -> str:
    """The characters of markers, typed alone."""
    tokenizer = pv.number_tokenizer(load_tokenizer(TINY), token="agg")
    markers = pv.marker_ids(tokenizer)
    for name, marker in markers.items():
        typed = tokenizer.convert_ids_to_tokens(marker)
        for text in (typed, f"the {typed} cat", f"</s>{typed}</s>"):
            assert not set(tokenizer(text)["input_ids"]) & set(markers.values()), name
    return "stay text"


FAULTS = {
    "a pattern that may take for ever": _recipe("may take for ever", r"numbers.pattern=(\d+)+e"),
    "a YAML bomb of aliases": _file("bomb.yaml", BOMB, "aliases written out", "train"),
    "YAML nested 5,000 deep": _file("deep.yaml", "[" * 5000, "nested too deeply", "train"),
    "JSON nested 100,000 deep": _file("x.jsonl", "[" * 100_000 + "]" * 100_000, "nested too deeply", "data", "show"),
    "an integer of 5,000 digits in JSON": _file(
        "x.jsonl", f'{{"answer": {"9" * 5000}}}', "4300 digits", "data", "show"
    ),
    "half of a surrogate pair in JSON": _file("x.jsonl", '{"question": "\\ud800"}', "surrogate", "data", "show"),
    "two columns of one name in a CSV file": _file("x.csv", "answer,answer\n1,2\n", "twice", "data", "show"),
    "a recipe with `seeds: [-1]`": _recipe("expected a seed", "seeds=[-1]"),
    "a recipe with `seeds: [1099511627776]`": _recipe("expected a seed", "seeds=[1099511627776]"),
    "a recipe with batches of 0 problems": _recipe("expected more than 0", "training.batch_size=0"),
    "a folder whose `run.json` is `[]`": foreign_run,
    "escape sequences in data": escapes,
    "weights that run code when they are unpickled": pickled,
    "weights without one layer of the model": incomplete,
    "a token `25` added to a number tokenizer": digits_taken,
    "characters of markers, typed alone": lone_markers,
}
