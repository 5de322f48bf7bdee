"""How fast a checkpoint answers FERMAT's ten paper sets with 3 beams, from problems to a file of predictions.

The alternative is `Seq2SeqTrainer.predict` with `predict_with_generate`: the same model with the same number tokens,
problems encoded by `encode_pairs`, the same batch size, precision and beams. It needs labels and also computes their
loss, which is a small part of its time. Both are timed from the texts of the problems to the predicted texts, with
models loaded and warm; rounds alternate, and the best of each counts. Without a GPU, only a sample of each set is
answered, and the rate has no target.

Run: `python -m benchmarks.generation --model FOLDER --out FILE`, or `python -m benchmarks generation`
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, get_args, get_type_hints
from unittest.mock import patch

import torch

import placevalue
from benchmarks.results import Check, Outcome, measure
from placevalue.common.hub import load_model, load_tokenizer
from placevalue.data import Problem, load_data
from placevalue.data.corpora import SHORTHANDS
from placevalue.evaluation.scoring import load_predictions
from placevalue.experiments import predict as predict_module
from placevalue.experiments.settings import GenerationConfig

MODEL, BEAMS, MAX_ANSWER, ROUNDS = "flan-t5-small-title", 3, 16, 2
BATCH_SIZE, SAMPLE = {"cuda": 1024, "cpu": 20}, {"cuda": None, "cpu": 4}
PER_SECOND = 1000.0


def run(
    model: str = MODEL,
    batch_size: int | None = None,
    precision: str = "float32",
    sample: int | None = None,
    rounds: int = ROUNDS,
    device: str | None = None,
) -> Outcome:
    """Measure both on one device.

    Args:
        model: An encoder-decoder. It gets number tokens and is not trained.
        batch_size: Problems per batch, for both.
        precision: The data type of the weights, for both.
        sample: Problems of each set. Default: all on a GPU, `SAMPLE` without.
        rounds: How often each is timed.
        device: `cuda` or `cpu`. Default: `cuda` if available.
    """
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    batch_size, sample = batch_size or BATCH_SIZE[device], sample or SAMPLE[device]
    sets = {name: load_data(name)[:sample] for name in SHORTHANDS["fermat"]}
    raw: dict[str, list[float]] = {"ours": [], "answering": [], "trainer": []}
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _save_with_numbers(model, folder / "model")
        predictor = _trainer(folder, batch_size, precision, device)
        ours = _Ours(folder, batch_size, precision, device)
        for warm in (True, *[False] * rounds):
            chosen = {name: rows[:64] for name, rows in list(sets.items())[:2]} if warm else sets
            theirs, mine = _trainer_seconds(predictor, chosen), ours.seconds(chosen)
            if not warm:
                raw["trainer"].append(theirs[0])
                raw["ours"].append(mine[0])
                raw["answering"].append(mine[1])
    count = sum(map(len, sets.values()))
    same = sum(a == b for a, b in zip(theirs[1], mine[2], strict=True)) / count
    config = {"model": Path(model).name, "problems": count, "sets": len(sets), "beams": BEAMS, "rounds": rounds}
    config |= {"max_answer": MAX_ANSWER, "batch_size": batch_size, "precision": precision}
    config["device"] = torch.cuda.get_device_name() if device == "cuda" else device
    return _outcome(config, raw, same, PER_SECOND if device == "cuda" and sample is None else None)


def _outcome(config: dict[str, Any], raw: dict[str, list[float]], same: float, target: float | None) -> Outcome:
    count, (ours, answering_alone, theirs) = config["problems"], (min(each) for each in raw.values())
    checks = [
        Check("our problems a second", count / ours, at_least=target, note=f"{ours:.1f} s, texts to file"),
        Check("of them while answering", count / answering_alone, note=f"{answering_alone:.1f} s in batches"),
        Check("Seq2SeqTrainer.predict's a second", count / theirs, note=f"{theirs:.1f} s, texts to texts"),
        Check("ours / Seq2SeqTrainer's", theirs / ours, at_least=1.0),
        Check("share of the same predictions", same, at_least=0.99 if config["precision"] == "float32" else None),
    ]
    return Outcome(config, checks, raw)


def _save_with_numbers(name: str, folder: Path) -> None:
    model, tokenizer = load_model(name), placevalue.number_tokenizer(load_tokenizer(name), token="agg")
    placevalue.save_pretrained(placevalue.attach(model, tokenizer), tokenizer, folder)


class _Ours:
    """`predict`, with the model loaded once and with given problems."""

    def __init__(self, folder: Path, batch_size: int, precision: str, device: str) -> None:
        self.folder, self.batch_size, self.precision, self.device = folder, batch_size, precision, device
        self.runs = 0
        self.load = predict_module.load_answerer
        self.loaded: Any = None

    def load_once(self, *arguments: Any) -> Any:
        """Load the model in the first, untimed run only."""
        self.loaded = self.loaded or self.load(*arguments)
        return self.loaded

    def seconds(self, sets: dict[str, list[Problem]]) -> tuple[float, float, list[str]]:
        """Seconds from texts to the file, seconds of the batches alone, and the predicted texts."""
        self.runs += 1
        out = self.folder / f"out-{self.runs}"
        settings: dict[str, Any] = {"beams": BEAMS, "batch_size": self.batch_size, "max_answer": MAX_ANSWER}
        settings |= {"precision": self.precision, "device": self.device}
        with (
            patch.object(predict_module, "load_data", lambda spec: sets[str(spec)]),
            patch.object(predict_module, "load_answerer", self.load_once),
        ):
            began = perf_counter()
            record = placevalue.predict(self.folder / "model", list(sets), out, **settings)
            took = perf_counter() - began
        return took, record.durations["generate"], [row.prediction for row in load_predictions(out).rows]


def _trainer(folder: Path, batch_size: int, precision: str, device: str) -> Any:
    """A Seq2SeqTrainer with the same model."""
    from transformers import DataCollatorForSeq2Seq, Seq2SeqTrainer, Seq2SeqTrainingArguments

    model, tokenizer = placevalue.from_pretrained(folder / "model", dtype=getattr(torch, precision))
    arguments = Seq2SeqTrainingArguments(
        output_dir=str(folder / "trainer"),
        per_device_eval_batch_size=batch_size,
        predict_with_generate=True,
        use_cpu=device == "cpu",
        remove_unused_columns=False,
        disable_tqdm=True,
        report_to=[],
    )
    collator = DataCollatorForSeq2Seq(tokenizer, model=model)
    return Seq2SeqTrainer(model.eval(), arguments, data_collator=collator, processing_class=tokenizer)


def _trainer_seconds(trainer: Any, sets: dict[str, list[Problem]]) -> tuple[float, list[str]]:
    """Seconds from texts to texts, and the predicted texts."""
    tokenizer = trainer.processing_class
    began = perf_counter()
    problems = [problem for each in sets.values() for problem in each]
    questions, answers = [problem.question for problem in problems], [problem.answer for problem in problems]
    examples = placevalue.encode_pairs(tokenizer, questions, answers, max_question=128, max_answer=MAX_ANSWER)
    ids = trainer.predict(examples, num_beams=BEAMS, max_length=MAX_ANSWER + 1).predictions  # 1 for the start token
    ids[ids < 0] = tokenizer.pad_token_id
    texts = [text.strip() for text in tokenizer.batch_decode(ids, skip_special_tokens=True)]
    return perf_counter() - began, texts


def main() -> int:
    """Measure with the settings of the command line."""
    description = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generation", description=description)
    parser.add_argument("--model", default=MODEL, help="folder, hub name or fetched name (default: %(default)s)")
    sizes = f"{BATCH_SIZE['cuda']} on a GPU, else {BATCH_SIZE['cpu']}"
    parser.add_argument("--batch-size", type=int, help=f"problems per batch, for both (default: {sizes})")
    precisions = get_args(get_type_hints(GenerationConfig)["precision"])
    parser.add_argument("--precision", choices=precisions, default="float32", help="default: %(default)s")
    parser.add_argument("--sample", type=int, help=f"problems per set (default: all on a GPU, else {SAMPLE['cpu']})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each is timed (default: %(default)s)")
    parser.add_argument("--device", choices=list(BATCH_SIZE), help="default: cuda if available")
    parser.add_argument("--out", type=Path, help="file for the record (default: benchmarks/records/generation.json)")
    options = vars(parser.parse_args())
    out = options.pop("out")
    return 1 if measure("generation", lambda: run(**options), out) else 0


if __name__ == "__main__":
    raise SystemExit(main())
