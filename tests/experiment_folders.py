"""Hand-made experiments: folders as `placevalue reproduce` writes them, through the real records, without training."""

from dataclasses import asdict

from placevalue.common.records import (
    Prediction,
    PredictionRecord,
    TrainRecord,
    record_hash,
    write_predictions,
    write_record,
)
from placevalue.evaluation.scoring import evaluate
from placevalue.experiments.recipe import make_recipe, to_yaml

PROVENANCE = {"time": "2026-01-02T03:04:05+00:00", "device": "cpu", "git": {"commit": "ab" * 20, "dirty": False}}
OPERATIONS = ("a+b", "a-b", "a*b", "a/b")


def problems(count, name="mawps:test", digits=2):
    """As many problems as are wanted: id, set, question, gold answer and operation."""
    corpus = name.partition(":")[0]
    return [
        dict(
            id=f"{name if corpus == 'fermat' else corpus}:{index}",
            set=name,
            question=f"What do {index} and {index} make?",
            answer=f"{10 ** (1 + index % digits) + index}.0",
            operation=OPERATIONS[index % 4],
        )
        for index in range(count)
    ]


def make_run(
    folder, config, asked, texts, seconds=60.0, losses=None, checksum="cd" * 32, tested="ef" * 32, counts=None
):
    """One finished run: `texts` are the predictions, one for each problem of `asked`; the checksums are of its data."""
    losses = (
        losses if losses is not None else [{"step": s, "loss": 3 / s, "ce": 2 / s, "aux": 9 / s} for s in (1, 2, 3)]
    )
    train = TrainRecord(
        config=config.to_dict(), seed=config.seed, method=config.method, model=config.model,
        data={config.data.train: checksum}, trained_on=(config.data.train,), steps=3, epochs=1.0,
        durations={"load": 1.0, "train": seconds}, counts=counts or {"problems": 8}, losses=tuple(losses), selected=None,
        provenance=PROVENANCE,
    )  # fmt: skip
    write_record(train, folder / "train.json")
    rows = [Prediction(prediction=text, **problem) for problem, text in zip(asked, texts, strict=True)]
    written = write_predictions(rows, folder / "predictions" / "predictions.jsonl")
    prediction = PredictionRecord(
        train=record_hash(train), model=config.model, method=config.method, trained_on=train.trained_on,
        data={each["set"]: tested for each in asked}, config={"beams": 3, "max_answer": 16}, counts={"problems": len(rows)},
        durations={"generate": 1.0}, predictions_file="predictions.jsonl", predictions_sha256=written,
        override_leakage=False, provenance=PROVENANCE, seed=config.seed,
    )  # fmt: skip
    write_record(prediction, folder / "predictions" / "prediction.json")
    evaluate(folder / "predictions", draws=50)


def make_experiment(
    folder, answers, asked, model="google/flan-t5-base", train="mawps:train", seconds=60.0, settings=(), **run
):
    """An experiment from `answers[method][seed]`, the predictions of each run; None leaves the run out.

    `settings` are further keys of its recipe.
    """
    methods, seeds = list(answers), sorted({seed for runs in answers.values() for seed in runs})
    sets = list(dict.fromkeys(each["set"] for each in asked))
    values = {"model": model, "data": {"train": train, "test": sets}, "methods": methods, "seeds": seeds}
    values |= {"baseline": "digits" if "digits" in methods else methods[0]} | dict(settings)
    recipe = make_recipe(values)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.yaml").write_text(to_yaml(asdict(recipe)))
    for method, runs in answers.items():
        for seed, texts in runs.items():
            if texts is not None:
                make_run(folder / f"{method}-{seed}", recipe.run(method, seed), asked, texts, seconds, **run)
    return folder


def right_up_to(asked, count, wrong="nothing"):
    """Predictions of which the first `count` are right."""
    return [each["answer"] if index < count else wrong for index, each in enumerate(asked)]
