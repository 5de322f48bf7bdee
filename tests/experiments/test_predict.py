"""Predictions of every kind of checkpoint: the same in any batch, after a kill, and as `generate` one by one."""

import csv
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import GenerationConfig

import placevalue as pv
from families import base_tokenizer
from placevalue.cli.main import main
from placevalue.common.errors import CheckpointError, ConfigError, DataError, ModelError
from placevalue.common.hub import load_model, load_tokenizer
from placevalue.common.records import (
    TRAINED_ON,
    PredictionRecord,
    TrainRecord,
    read_predictions,
    read_record,
    record_hash,
    write_predictions,
)
from placevalue.data import FERMAT_SETS, PAPER_SETS, Problem, load_data
from placevalue.data.corpora import expand_data
from placevalue.evaluation.scoring import evaluate
from placevalue.experiments import predict as predict_module
from placevalue.experiments.generator import load_answerer, read_checkpoint
from placevalue.experiments.predict import PARTIAL, assign_problems, generate
from placevalue.experiments.recipe import make_recipe
from placevalue.experiments.settings import GenerationConfig as Generation
from placevalue.experiments.train import train
from zoo import build

SOURCE = str(Path(pv.__file__).parents[1])
NAMES = ["t5", "bart", "llama", "gemma3"]


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Folders of small models, as they are (`t5`) and with numbers (`t5-numbers`), and files of problems."""
    folder = tmp_path_factory.mktemp("home")
    for name in NAMES:
        model, base = build(name)
        model.save_pretrained(folder / name)
        base.save_pretrained(folder / name)
        tokenizer = pv.number_tokenizer(base, token="agg")
        pv.save_pretrained(pv.attach(model, tokenizer), tokenizer, folder / f"{name}-numbers")
    rows = [
        (f"{'the cat sat ' * (i % 5)}{i * 37 % 1000} and {i}.5 more, {'then ' * (i % 3)}how many?", str(i * 38))
        for i in range(13)
    ]
    for file, chosen in (("sums.csv", rows), ("few.csv", rows[:4])):
        with (folder / file).open("w", newline="") as opened:
            csv.writer(opened).writerows([("question", "answer"), *chosen])
    return folder


def texts(folder):
    return {row.id: row.prediction for row in read_predictions(Path(folder) / "predictions.jsonl")}


def one_by_one(folder, problems, beams, max_answer=16):
    """What a user's own loop writes."""
    plain = "numbers" not in Path(folder).name
    model, tokenizer = (load_model(folder), load_tokenizer(folder)) if plain else pv.from_pretrained(folder)
    model.eval()
    encoder_decoder = model.config.is_encoder_decoder
    found = {}
    for problem in problems:
        (example,) = pv.encode_questions(tokenizer, [problem.question], encoder_decoder=encoder_decoder, plain=plain)
        ids = torch.tensor([example["input_ids"]])
        made = model.generate(ids, num_beams=beams, do_sample=False, max_new_tokens=max_answer)[0]
        new = made[1:] if encoder_decoder else made[ids.shape[1] :]
        found[problem.id] = tokenizer.decode(new, skip_special_tokens=True).strip()
    return found


@pytest.mark.parametrize("kind", ["", "-numbers"])
@pytest.mark.parametrize("name", NAMES)
def test_batches_change_nothing_and_equal_a_loop(home, tmp_path, name, kind):
    data = str(home / "sums.csv")
    for size in (1, 3, 64):
        generate(home / (name + kind), [data], tmp_path / f"{size}", beams=1, batch_size=size)
    assert texts(tmp_path / "1") == texts(tmp_path / "3") == texts(tmp_path / "64")
    assert texts(tmp_path / "1") == one_by_one(home / (name + kind), load_data(data), 1)
    assert len(set(texts(tmp_path / "1").values())) > 1, "the small models do not all say the same"


@pytest.mark.parametrize("name", ["t5-numbers", "bart", "llama-numbers", "gemma3"])
def test_beams_equal_a_loop(home, tmp_path, name):
    data = str(home / "few.csv")
    record = generate(home / name, [data], tmp_path, batch_size=3)
    assert record.config["beams"] == 3
    assert texts(tmp_path) == one_by_one(home / name, load_data(data), 3)


@pytest.mark.parametrize("name", ["t5-numbers", "bart-numbers", "llama-numbers", "gemma3-numbers"])
def test_no_marker_and_no_special_token_reaches_the_text(home, name):
    checkpoint = read_checkpoint(home / name)
    tokenizer = checkpoint.tokenizer
    answerer = load_answerer(checkpoint, Generation(beams=1), 16, "cpu")
    markers = list(pv.marker_ids(tokenizer).values())
    (target,) = pv.encode_pairs(tokenizer, ["?"], ["12.5 cats"], encoder_decoder=True)
    body = [i for i in target["labels"] if i != tokenizer.eos_token_id]
    start = [0] if answerer.encoder_decoder else [5, 5]
    made = torch.tensor(
        [[*start, *markers, *body, tokenizer.pad_token_id or 0, markers[0], tokenizer.eos_token_id, 7, 8]]
    )
    answerer.model.generate = lambda **_: made
    (text,) = answerer.answer([[5, 5]])
    assert text == "12.5 cats"


def test_what_a_checkpoint_asks_for_is_not_done(home, tmp_path):
    shutil.copytree(home / "t5", tmp_path / "odd")
    own = GenerationConfig.from_pretrained(tmp_path / "odd")
    own.update(do_sample=True, temperature=5.0, top_k=3, repetition_penalty=9.0, no_repeat_ngram_size=1, min_length=9)
    own.update(
        forced_bos_token_id=7, forced_eos_token_id=9, length_penalty=4.0, num_return_sequences=2, eos_token_id=[1, 11]
    )
    own.update(suppress_tokens=[4, 5, 6], early_stopping=True)
    (tmp_path / "odd" / "generation_config.json").write_text(json.dumps(own.to_dict()))
    data = str(home / "few.csv")
    for beams in (1, 3):
        generate(home / "t5", [data], tmp_path / f"plain-{beams}", beams=beams)
        generate(tmp_path / "odd", [data], tmp_path / f"odd-{beams}", beams=beams)
        assert texts(tmp_path / f"odd-{beams}") == texts(tmp_path / f"plain-{beams}")
    answerer = load_answerer(read_checkpoint(tmp_path / "odd"), Generation(), 16, "cpu")
    assert answerer.stops.tolist() == [1, 11], "but its end tokens are kept"


def test_precisions(home, tmp_path):
    for precision in ("bfloat16", "float16"):
        for name in ("t5-numbers", "llama-numbers"):
            record = generate(home / name, [str(home / "few.csv")], tmp_path / name / precision, precision=precision)
            assert record.config["precision"] == precision
    answerer = load_answerer(read_checkpoint(home / "llama"), Generation(1, precision="bfloat16"), 4, "cpu")
    assert answerer.model.dtype is torch.bfloat16
    for given, words in (
        (dict(beams=0, batch_size=-1), r"generation\.beams=0: expected more than 0; generation\.batch_size=-1"),
        (dict(precision="int8"), "generation.precision: expected one of float32, bfloat16, float16, found 'int8'"),
        (dict(max_question=0, max_answer=-1), "max_question=0: expected at least 1; max_answer=-1"),
    ):
        with pytest.raises(ConfigError, match=words):
            generate(home / "t5", ["mawps:test"], tmp_path, **given)


class TestRecords:
    def test_counts_rows_and_questions(self, home, tmp_path):
        own = str(home / "sums.csv")
        data = ["fermat:1000+", own]
        plan = assign_problems(home / "t5-numbers", data, max_question=30, max_answer=16)
        assert plan.counts["problems"] == 1111 + 13 and plan.counts[f"problems:{own}"] == 13
        assert plan.counts["unreachable_answers:fermat:1000+"] == 209 == 1111 - 902
        assert plan.counts[f"unreachable_answers:{own}"] == 0
        assert 0 < plan.counts[f"cut_questions:{own}"] < 13
        assert plan.counts["cut_questions"] == sum(plan.counts[f"cut_questions:{name}"] for name in data)
        assert all(len(ids) <= 30 for ids in plan.questions)

    def test_every_answer_has_room_by_default(self, home, tmp_path):
        (tmp_path / "long.csv").write_text("question,answer\nOne?,1\nMany?,12345678901234567890123\n")
        plan = assign_problems(home / "t5-numbers", [str(tmp_path / "long.csv")])
        assert assign_problems(home / "t5-numbers", [str(home / "few.csv")]).max_answer == 16
        assert plan.max_answer > 23 and plan.reachable == [True, True]
        tight = assign_problems(home / "t5-numbers", [str(tmp_path / "long.csv")], max_answer=plan.max_answer - 1)
        assert tight.reachable == [True, False], "no more room than the longest needs"

    def test_fermats_questions_stay_apart_from_its_answers(self, home, tmp_path, monkeypatch):
        few = {spec: load_data(spec)[:3] for spec in ("fermat:Original", "mawps:test")}
        monkeypatch.setattr("placevalue.experiments.predict.load_data", few.__getitem__)
        record = generate(home / "t5-numbers", list(few), tmp_path, beams=1, max_answer=6)
        rows = read_predictions(tmp_path / "predictions.jsonl")
        assert [row.id for row in rows] == [problem.id for problems in few.values() for problem in problems]
        assert [row.set for row in rows] == ["fermat:Original"] * 3 + ["mawps:test"] * 3
        assert all(row.question is None for row in rows[:3]) and rows[4].question == few["mawps:test"][1].question
        assert rows[0].operation == few["fermat:Original"][0].operation
        assert any(row.reachable for row in rows) and not all(row.reachable for row in rows)
        assert record.counts["unreachable_answers"] == sum(not row.reachable for row in rows)
        assert (record.train, record.method, record.seed, record.model) == (None, None, None, "t5-numbers")
        assert record.config["max_question"] == 128 and record.config["max_answer"] == 6
        assert set(record.durations) == {"load", "generate"} and record.provenance["device"] == "cpu"
        assert read_record(tmp_path / "prediction.json", PredictionRecord) == record
        assert not (tmp_path / PARTIAL).exists()

    def test_a_finished_folder_is_left_as_it_is_and_another_run_refused(self, home, tmp_path, monkeypatch):
        data = [str(home / "few.csv")]
        first = generate(home / "t5", data, tmp_path / "out", beams=1)
        (tmp_path / "out" / PARTIAL).write_text("left by a kill between record and removal")
        monkeypatch.setattr(predict_module, "load_answerer", None)
        assert generate(home / "t5", data, tmp_path / "out", beams=1) == first
        assert not (tmp_path / "out" / PARTIAL).exists()
        with pytest.raises(DataError, match=r"prediction\.json is of another run: config.beams is 1 there and 2 here"):
            generate(home / "t5", data, tmp_path / "out", beams=2)
        with pytest.raises(DataError, match=r"config.checkpoint is 't5' there and 'bart' here; config.weights is"):
            generate(home / "bart", data, tmp_path / "out", beams=1)

    def test_names_for_several_sets(self):
        assert expand_data(["mawps:test", "fermat", "fermat:Original"]) == [
            "mawps:test",
            *(f"fermat:{n}" for n in PAPER_SETS),
        ]
        assert expand_data(["fermat-all"]) == [f"fermat:{name}" for name in FERMAT_SETS]
        for wrong, told in (("fermat", "put 'fermat' into a list"), ([], "names no problems")):
            with pytest.raises(ConfigError, match=told):
                expand_data(wrong)

    def test_a_problem_stands_in_a_file_once(self, home, tmp_path):
        with pytest.raises(DataError, match="is in both mawps:test and mawps-dedup:test: predict them into two"):
            generate(home / "t5", ["mawps:test", "mawps-dedup:test"], tmp_path)


class TestLeakage:
    @pytest.mark.parametrize("name", ["t5", "t5-numbers"])
    def test_it_is_refused_before_anything_is_loaded(self, home, tmp_path, monkeypatch, name):
        shutil.copytree(home / name, tmp_path / "model")
        config = json.loads((tmp_path / "model" / "config.json").read_text())
        (tmp_path / "model" / "config.json").write_text(json.dumps(config | {TRAINED_ON: ["mawps"]}))
        with monkeypatch.context() as patch:
            patch.setattr(predict_module, "load_answerer", None)
            with pytest.raises(DataError, match="1,104 of FERMAT's"):
                generate(tmp_path / "model", ["fermat:Original"], tmp_path / "out")
        assert not (tmp_path / "out").exists()
        few = load_data("fermat:Original")[:2]
        monkeypatch.setattr("placevalue.experiments.predict.load_data", lambda _: few)
        record = generate(tmp_path / "model", ["fermat:Original"], tmp_path / "out", beams=1, allow_leakage=True)
        assert record.override_leakage and record.trained_on == ("mawps",)


class TestStopped:
    @pytest.mark.slow
    def test_a_killed_run_ends_with_the_predictions_it_would_have_had(self, home, tmp_path):
        data = str(home / "sums.csv")
        code = (
            "import sys, time; from placevalue.experiments.predict import generate\n"
            "generate(sys.argv[1], [sys.argv[2]], sys.argv[3], batch_size=2, progress=lambda d, a: time.sleep(0.2))"
        )
        command = [sys.executable, "-c", code, str(home / "llama-numbers"), data, str(tmp_path / "cut")]
        environment = os.environ | {"PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1"}
        killed = subprocess.Popen(command, env=environment)
        partial = tmp_path / "cut" / PARTIAL
        while not partial.exists() or partial.read_bytes().count(b"\n") < 3:
            assert killed.poll() is None
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        finished = partial.read_bytes().count(b"\n") - 1
        assert 2 <= finished < 7 and not (tmp_path / "cut" / "prediction.json").exists()
        with partial.open("a") as file:
            file.write('{"batch": 6, "seconds": 0.1, "predic')
        told = []
        again = generate(
            home / "llama-numbers", [data], tmp_path / "cut", batch_size=2, progress=lambda *n: told.append(n)
        )
        assert told[0] == (2 * finished, 13) and told[-1] == (13, 13) and len(told) == 7 - finished + 1
        whole = generate(home / "llama-numbers", [data], tmp_path / "whole", batch_size=2)
        assert again.predictions_sha256 == whole.predictions_sha256
        assert {key: value for key, value in vars(again).items() if key not in ("durations", "provenance")} == {
            key: value for key, value in vars(whole).items() if key not in ("durations", "provenance")
        }

    def test_what_another_run_began_is_refused(self, home, tmp_path):
        data = [str(home / "sums.csv")]

        def stop(done, _all):
            if done:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            generate(home / "t5", data, tmp_path, beams=1, batch_size=5, progress=stop)
        with pytest.raises(
            DataError, match=r"partial\.jsonl is of another run: config.batch_size is 5 there and 4 here"
        ):
            generate(home / "t5", data, tmp_path, beams=1, batch_size=4)
        lines = (tmp_path / PARTIAL).read_text().splitlines()
        (tmp_path / PARTIAL).write_text(lines[0] + "\n" + lines[1][:9])
        generate(home / "t5", data, tmp_path, beams=1, batch_size=4)  # nothing of the other run was finished

    @pytest.mark.parametrize("stopped", [False, True])
    def test_the_seconds_of_all_batches_add_up(self, home, tmp_path, monkeypatch, stopped):
        """By a clock on which every batch takes one second."""
        monkeypatch.setattr(predict_module, "time", SimpleNamespace(monotonic=itertools.count().__next__))
        run = dict(checkpoint=home / "t5", data=[str(home / "sums.csv")], out=tmp_path, beams=1, batch_size=3)

        def stop(done, _all):
            if done == 6:
                raise KeyboardInterrupt

        if stopped:
            with pytest.raises(KeyboardInterrupt):
                generate(**run, progress=stop)
        assert generate(**run).durations == {"load": 1, "generate": 5}

    def test_memory_that_does_not_suffice_names_the_setting(self, home, tmp_path, monkeypatch):
        def answer(*_):
            raise torch.OutOfMemoryError("CUDA out of memory")

        monkeypatch.setattr("placevalue.experiments.generator.Answerer.answer", answer)
        with pytest.raises(ConfigError, match="batch_size=64 does not fit into memory"):
            generate(home / "t5", [str(home / "few.csv")], tmp_path)


class TestCheckpoints:
    @pytest.fixture(scope="class")
    def runs(self, home, tmp_path_factory):
        """Runs of training: one with its numbers, one without."""
        folder = tmp_path_factory.mktemp("runs")
        settings = {"max_steps": 2, "checkpoint_every": 1, "batch_size": 4, "max_question": 60, "max_answer": 9}
        for name, method in (("t5", "agg-before"), ("llama", "untouched"), ("llama", "agg-aux")):
            values = {"model": str(home / name), "data": {"train": str(home / "sums.csv")}}
            recipe = make_recipe(values | {"methods": [method], "training": settings})
            train(recipe.run(), folder / method)
        return folder

    @pytest.mark.parametrize("method", ["agg-before", "untouched", "agg-aux"])
    def test_a_run_and_its_checkpoints(self, home, runs, tmp_path, method):
        record = generate(runs / method, [str(home / "few.csv")], tmp_path / "a", beams=1)
        trained = read_record(runs / method / "train.json", TrainRecord)
        assert record.train == record_hash(trained) and record.trained_on == trained.trained_on
        assert (record.method, record.seed, record.model) == (method, 42, trained.model)
        assert (record.config["max_question"], record.config["max_answer"]) == (60, 9)
        checkpoints = runs / method / "checkpoints"
        last = generate(checkpoints / "checkpoint-2", [str(home / "few.csv")], tmp_path / "b", beams=1)
        assert last.train == record.train and last.predictions_sha256 == record.predictions_sha256
        first = generate(checkpoints / "checkpoint-1", [str(home / "few.csv")], tmp_path / "c", beams=1)
        assert first.config["weights"] != last.config["weights"] and first.config["checkpoint"] == "checkpoint-1"

    def test_a_run_that_is_not_finished(self, home, runs, tmp_path):
        shutil.copytree(runs / "agg-before", tmp_path / "run")
        for name in ("train.json", "config.json", "model.safetensors"):
            (tmp_path / "run" / name).unlink()
        with pytest.raises(CheckpointError, match="an unfinished run: finish it, or give one of its checkpoints"):
            generate(tmp_path / "run", ["mawps:test"], tmp_path / "out")
        found = read_checkpoint(tmp_path / "run" / "checkpoints" / "checkpoint-1")
        assert found.train is None and found.run["training"]["max_answer"] == 9 and len(found.trained_on) == 1

    def test_what_writes_no_answers_is_refused(self, home, tmp_path):
        model, base = build("bert")
        model.save_pretrained(tmp_path / "bert")
        base.eos_token = "</s>"
        base.save_pretrained(tmp_path / "bert")
        with pytest.raises(ModelError, match="bert is a BertForMaskedLM, which generates no text"):
            generate(tmp_path / "bert", [str(home / "few.csv")], tmp_path / "out")

    @pytest.mark.parametrize("numbers", [True, False])
    def test_adapters(self, home, tmp_path, numbers):
        peft = pytest.importorskip("peft")
        name = "llama-numbers" if numbers else "llama"
        model, tokenizer = pv.from_pretrained(home / name) if numbers else (load_model(home / name), None)
        model.name_or_path = model.config.name_or_path = str(home / name)
        torch.manual_seed(0)
        adapted = peft.get_peft_model(model, peft.LoraConfig(target_modules=["q_proj"], init_lora_weights=False))
        adapted.save_pretrained(tmp_path / "adapter")
        if numbers:
            tokenizer.save_pretrained(tmp_path / "adapter")
        record = generate(tmp_path / "adapter", [str(home / "sums.csv")], tmp_path / "out", beams=1)
        assert record.model == "adapter"
        generate(home / name, [str(home / "sums.csv")], tmp_path / "base", beams=1)
        assert texts(tmp_path / "out") != texts(tmp_path / "base"), "the adapter is there"
        model = pv.from_pretrained(tmp_path / "adapter")[0] if numbers else adapted
        model.merge_and_unload().save_pretrained(tmp_path / "merged")
        (tokenizer or build("llama")[1]).save_pretrained(tmp_path / "merged")
        generate(tmp_path / "merged", [str(home / "sums.csv")], tmp_path / "whole", beams=1)
        assert texts(tmp_path / "out") == texts(tmp_path / "whole")


class TestVerb:
    def test_from_training_to_scores(self, home, tmp_path, capsys):
        (tmp_path / "tiny.yaml").write_text(
            f"model: {home / 't5'}\ndata: {{train: {home / 'sums.csv'}}}\nmethods: [agg-before]\n"
            "training: {max_steps: 2, batch_size: 4}\n"
        )
        run, out = str(tmp_path / "run"), str(tmp_path / "out")
        assert main(["train", str(tmp_path / "tiny.yaml"), "--out", run]) == 0
        flags = [run, "--data", str(home / "sums.csv"), "--data", "mawps:test", "--out", out]
        flags += ["--beams", "1", "--max-answer", "6"]
        capsys.readouterr()
        assert main(["generate", *flags, "--dry-run"]) == 0
        shown = capsys.readouterr().out
        assert "max_answer: 6" in shown and "max_question: 128" in shown and "unreachable" in shown
        assert "mawps:test" in shown and "500" in shown and "513" in shown and not Path(out).exists()
        assert main(["generate", *flags, "--batch-size", "128"]) == 0
        shown = capsys.readouterr().out
        assert "513/513" in shown and "note: trained on file:" in shown and "513 problems in" in shown
        assert main(["evaluate", out, "--draws", "10"]) == 0
        assert "mawps:test" in capsys.readouterr().out
        scores = evaluate(out, draws=10).scores
        assert scores["mawps:test"]["accuracy_paper"]["n"] == 500

    def test_faults_are_told(self, home, tmp_path, capsys):
        flags = ["--data", "mawps:nothing", "--out", str(tmp_path / "out")]
        assert main(["generate", str(home / "t5"), *flags]) == 1
        assert "expected one of mawps:train" in capsys.readouterr().err


def test_writing_takes_little_memory_for_each_prediction(tmp_path):
    def peak(count):
        problems = [Problem(f"mawps:{n}", "How many?", "7") for n in range(count)]
        order = list(range(count))[::-1]
        batches = [order[first : first + 8] for first in range(0, count, 8)]
        partial = SimpleNamespace(texts={batch: [str(i) for i in rows] for batch, rows in enumerate(batches)})
        assignment = SimpleNamespace(
            generation=SimpleNamespace(batch_size=8),
            batches=batches,
            sets={"mawps:test": problems},
            reachable=[True] * count,
            checkpoint=SimpleNamespace(tokenizer=base_tokenizer("unigram-t5")),
        )
        tracemalloc.start()
        write_predictions(predict_module._predictions(assignment, partial, Counter()), tmp_path / "p.jsonl")
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert [row.prediction for row in read_predictions(tmp_path / "p.jsonl")] == [str(i) for i in range(count)]
        return used

    assert (peak(4000) - peak(1000)) / 3000 < 100
