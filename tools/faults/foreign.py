"""Files that are not ours: every verb that writes is pointed at a folder or a file of somebody else."""

from pathlib import Path
from unittest import mock

from placevalue.common import fetch
from tools.faults.bench import Bench, run_verb, snapshot

QUICK = Path(__file__).parents[2] / "results" / "quick"
TINY = "placevalue-tiny"
FOLDER, FILE = "nothing in it says that placevalue wrote it", "is not a file that placevalue wrote"


def _refused(theirs: Path, words: str, *verb: object) -> str:
    """The verb ends with these words, and nothing below `theirs` was touched."""
    before = snapshot(theirs)
    status, shown = run_verb(*verb)
    assert status == 1 and words in " ".join(shown.split()), shown
    assert snapshot(theirs) == before
    return "refused; nothing is touched"


def _somebodys(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("precious")
    return folder


def checkpoints(bench: Bench) -> str:
    """Weights of another tool where `train` keeps its own."""
    theirs = _somebodys(bench.place / "x", "checkpoints/checkpoint-100/model.safetensors")
    return _refused(theirs, FOLDER, "train", bench.recipe_file(), "--out", theirs)


def linked_checkpoints(bench: Bench) -> str:
    """The same behind a link, with every word of the command line that could make it go on."""
    theirs = _somebodys(bench.place / "theirs", "kept/checkpoint-100/model.safetensors")
    (theirs / "x").mkdir()
    (theirs / "x" / "checkpoints").symlink_to(theirs / "kept")
    return _refused(theirs, FOLDER, "train", bench.recipe_file(), "--resume", "--out", theirs / "x")


def model(bench: Bench) -> str:
    """A model of another tool."""
    theirs = _somebodys(bench.place / "x", "model.safetensors", "config.json")
    return _refused(theirs, FOLDER, "train", bench.recipe_file(), "--out", theirs)


def other_config(bench: Bench) -> str:
    """Files of another tool whose names are those of our marks."""
    theirs = _somebodys(bench.place / "x", "model.safetensors")
    (theirs / "run.json").write_text('{"learning_rate": 0.1}')
    return _refused(theirs, FOLDER, "train", bench.recipe_file(), "--out", theirs)


def predictions(bench: Bench) -> str:
    """Predictions of another tool."""
    theirs = _somebodys(bench.place / "x", "predictions.jsonl")
    return _refused(theirs, FOLDER, "predict", TINY, "--data", bench.data, "--out", theirs)


def score(bench: Bench) -> str:
    """A file that `evaluate` is told to write."""
    theirs = _somebodys(bench.place / "x", "score.json")
    predicted = QUICK / "digits-1" / "predictions"
    return _refused(theirs, "not JSON", "evaluate", predicted, "--draws", 9, "--out", theirs / "score.json")


def recipe(bench: Bench) -> str:
    """`reproduce` in the folder of the user's own recipe, with a run of `train` beside it."""
    theirs = _somebodys(bench.place / "x", "notes.txt")
    bench.recipe_file().rename(theirs / "recipe.yaml")
    bench.train("x/agg-aux-1", max_steps=1)
    return _refused(theirs, FOLDER, "reproduce", theirs / "recipe.yaml", "--out", theirs)


def sweep_record(bench: Bench) -> str:
    """A record of another sweep tool."""
    theirs = _somebodys(bench.place / "x", "sweep.json")
    return _refused(theirs, FOLDER, "sweep", bench.recipe_file(), "--method", "aux-soft", "--out", theirs)


def journal(bench: Bench) -> str:
    """A file with the name of a sweep's journal."""
    theirs = _somebodys(bench.place / "x", "study.journal")
    return _refused(theirs, "cannot be used", "sweep", bench.recipe_file(), "--method", "aux-soft", "--out", theirs)


def page(bench: Bench) -> str:
    """A page that `report` is told to write."""
    theirs = _somebodys(bench.place / "x", "index.html")
    return _refused(theirs, FILE, "report", QUICK, "--out", theirs / "index.html")


def tables(bench: Bench) -> str:
    """A file that `report` is told to write tables to, in each format."""
    theirs = _somebodys(bench.place / "x", "table.txt")
    words = ("report", QUICK, "--out", theirs / "table.txt", "--format")
    return {_refused(theirs, FILE, *words, kind) for kind in ("markdown", "latex", "csv")}.pop()


def picture(bench: Bench) -> str:
    """A picture that `inspect` is told to write."""
    theirs = _somebodys(bench.place / "x", "a.svg")
    return _refused(theirs, FILE, "inspect", "the 12", "--model", TINY, "--svg", theirs / "a.svg")


def figures(bench: Bench) -> str:
    """Figures of another tool where `neighbours` draws its own."""
    theirs = _somebodys(bench.place / "x", f"{TINY}/f1-all.png")
    return _refused(theirs, FOLDER, "neighbours", "--model", TINY, "--out", theirs)


def problems(bench: Bench) -> str:
    """Training data of another tool where `data fermat` writes its own."""
    theirs = _somebodys(bench.place / "x", "train.jsonl")
    return _refused(theirs, FOLDER, "data", "fermat", "--size", 4, "--dev-size", 4, "--out", theirs)


def fetched(bench: Bench) -> str:
    """A folder of somebody in the cache, where `fetch` puts a model."""
    theirs = _somebodys(bench.place / "x", "smollm2-135m/notes.txt")
    converted = bench.place / "made"
    _somebodys(converted, "tokenizer.json", "model.safetensors")

    def make(_parts: Path, folder: Path) -> None:
        for path in converted.iterdir():
            path.rename(folder / path.name)

    made = mock.Mock(needs=None, packages=[], convert=make)
    with (
        mock.patch.dict("os.environ", PLACEVALUE_CACHE=str(theirs)),
        mock.patch.multiple(fetch, _download=mock.Mock(), _unpack=mock.Mock(), _check=mock.Mock()),
        mock.patch.dict(fetch.PRETRAINED, {"smollm2-135m": made}),
    ):
        return _refused(theirs, "is not a fetched model", "fetch", "smollm2-135m")


FAULTS = {
    "`train`: another tool's checkpoints in the folder": checkpoints,
    "`train`: another tool's checkpoints behind a link": linked_checkpoints,
    "`train`: another tool's model in the folder": model,
    "`train`: another tool's `run.json` in the folder": other_config,
    "`predict`: another tool's predictions in the folder": predictions,
    "`evaluate --out`: a file of somebody": score,
    "`reproduce`: a folder with your own `recipe.yaml` and a run": recipe,
    "`sweep`: another tool's `sweep.json` in the folder": sweep_record,
    "`sweep`: a file in the place of the journal": journal,
    "`report --out`: a page of somebody": page,
    "`report --out`: a file of somebody, in every format": tables,
    "`inspect --svg`: a file of somebody": picture,
    "`neighbours`: another tool's figures in the folder": figures,
    "`data fermat`: another tool's data in the folder": problems,
    "`fetch`: a folder of somebody in the cache": fetched,
}
