"""Runs of training: every method, resumed to the bit, on one process or two."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from huggingface_hub import ModelCard
from safetensors.torch import load_file
from transformers import AutoModel

import placevalue as pv
from placevalue.cli.main import main
from placevalue.common.errors import ConfigError, ModelError, PlacevalueError, TrainingError
from placevalue.common.records import TRAINED_ON, TrainRecord, read_record
from placevalue.experiments.checksums import mark_whole
from placevalue.experiments.methods import METHODS
from placevalue.experiments.preflight import find_obstacles
from placevalue.experiments.recipe import make_recipe, read_recipe
from placevalue.experiments.resume import claim_folder
from placevalue.experiments.run_folder import is_run
from placevalue.experiments.train import prepare, train
from zoo import build

SOURCE = str(Path(pv.__file__).parents[1])
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Folders of small models with dropout, one without, and a file of problems."""
    folder = tmp_path_factory.mktemp("home")
    for part in build("t5-flan"):
        part.save_pretrained(folder / "calm")
    for name in ("t5-flan", "llama"):
        model, base = build(name)
        for key in ("dropout_rate", "attention_dropout"):
            if hasattr(model.config, key):
                setattr(model.config, key, 0.1)
        model.save_pretrained(folder / name)
        base.save_pretrained(folder / name)
    rows = "".join(f"{i} and {i + 3} more?,{2 * i + 3}\n" for i in range(24))
    (folder / "sums.csv").write_text("question,answer\n" + rows)
    return folder


def recipe(home, name="t5-flan", method="aux-soft", **training):
    settings = {"max_steps": 6, "checkpoint_every": 3, "batch_size": 4, "log_every": 2, "warmup_steps": 2} | training
    data = str(home / "sums.csv")
    return make_recipe(
        {"model": str(home / name), "data": {"train": data, "dev": data}, "methods": [method], "training": settings}
    )


def weights(folder):
    return load_file(Path(folder) / "model.safetensors")


ALIKE = [name for name, each in METHODS.items() if each.mix == "add"][1:]  # differ in a formula alone
ALIKE += [name for name, each in METHODS.items() if each.rewrite][1:]
ALIKE += [name for name, each in METHODS.items() if each.vector][1:]
TRAINED = [
    pytest.param(
        "llama" if method.rewrite or method.vector else "t5-flan", each, marks=pytest.mark.slow if each in ALIKE else ()
    )
    for each, method in METHODS.items()
]


@pytest.mark.parametrize("name, method", [*TRAINED, ("llama", "agg-aux"), ("llama", "untouched")])
def test_every_method_trains_and_comes_back(home, tmp_path, name, method):
    record = train(recipe(home, name, method, learning_rate=1e-3).run(), tmp_path / "run")
    assert record.steps == 6 and record.method == method and record.counts["problems"] == 24
    assert read_record(tmp_path / "run" / "train.json", TrainRecord) == record
    rows = [row for row in record.losses if "loss" in row]
    assert [row["step"] for row in rows] == [2, 4, 6] and all("seconds" in row for row in rows)
    assert all(("aux" in row) == (METHODS[method].loss is not None) for row in rows)
    (source,) = record.trained_on
    assert source.startswith("file:")
    card = ModelCard.load(tmp_path / "run" / "README.md")
    for said in (f"method {method}, seed {record.seed}, 6 steps on sums.csv", f"Base model: {name}.", source[5:]):
        assert said in card.text
    given = METHODS[method]
    sealed = given.token == "agg" or given.rewrite is not None or given.pauses > 0 or given.vector is not None
    assert card.data.library_name == ("placevalue" if sealed else "transformers") and str(home) not in card.content
    for folder in (tmp_path / "run", tmp_path / "run" / "checkpoints" / "checkpoint-6"):
        with pytest.raises(ValueError, match="placevalue.from_pretrained") if sealed else contextlib.nullcontext():
            AutoModel.from_pretrained(folder)
    if not METHODS[method].digits:
        return
    for folder in (tmp_path / "run", tmp_path / "run" / "checkpoints" / "checkpoint-6"):
        model, tokenizer = pv.from_pretrained(folder)
        assert pv.is_attached(model) and getattr(model.config, TRAINED_ON) == [source]
        for key, value in weights(tmp_path / "run").items():
            assert torch.equal(model.state_dict()[key], value), key


def test_precisions_work_on_a_cpu_too(home, tmp_path):
    ends = {}
    for precision in ("float32", "tf32", "bfloat16"):
        torch.set_float32_matmul_precision("medium")  # what was set before does not reach a run
        train(recipe(home, precision=precision, learning_rate=1e-3).run(), tmp_path / precision)
        ends[precision] = torch.cat([value.flatten() for value in weights(tmp_path / precision).values()])
        assert torch.get_float32_matmul_precision() == "medium"
    torch.set_float32_matmul_precision("highest")
    assert torch.equal(ends["float32"], ends["tf32"]) and not torch.equal(ends["float32"], ends["bfloat16"])
    assert torch.allclose(ends["float32"], ends["bfloat16"], atol=0.02)


@pytest.mark.parametrize("log_every", [1, 100])
def test_a_run_whose_loss_is_no_number_ends_there(home, tmp_path, log_every):
    config = recipe(home, learning_rate=1e9, warmup_steps=0, log_every=log_every).run()
    with pytest.raises(TrainingError, match=r"the loss is nan at step [2-6]: .*training.learning_rate"):
        train(config, tmp_path / "run")
    assert not (tmp_path / "run" / "train.json").exists()


def test_the_checkpoint_is_chosen_by_dev(home, tmp_path):
    record = train(recipe(home, select="dev-loss", learning_rate=0.05, max_steps=9).run(), tmp_path / "run")
    losses = {row["step"]: row["eval_loss"] for row in record.losses if "eval_loss" in row}
    best = min(losses, key=losses.get)
    assert record.selected["checkpoint"] == f"checkpoint-{best}"
    kept = tmp_path / "run" / "checkpoints" / record.selected["checkpoint"]
    assert all(torch.equal(value, weights(kept)[key]) for key, value in weights(tmp_path / "run").items())


@pytest.mark.parametrize("name", ["t5-flan", "llama"])
def test_the_accuracy_on_dev_is_that_of_greedy_decoding(home, tmp_path, name):
    settings = dict(max_steps=150, learning_rate=1e-2, batch_size=24, checkpoint_every=150)
    record = train(recipe(home, name, "digits", **settings).run(), tmp_path / "run")
    told = next(row["eval_accuracy"] for row in record.losses if "eval_accuracy" in row)
    model, tokenizer = pv.from_pretrained(tmp_path / "run")
    lines = (home / "sums.csv").read_text().splitlines()[1:]
    right = 0
    for line in lines:
        question, answer = line.split(",")
        ids = torch.tensor([pv.encode_questions(tokenizer, [question])[0]["input_ids"]])
        made = model.generate(ids, max_new_tokens=16, do_sample=False, pad_token_id=tokenizer.pad_token_id)[0]
        new = made[1:] if model.config.is_encoder_decoder else made[ids.shape[1] :]
        (gold,) = pv.encode_pairs(tokenizer, [question], [answer])
        right += [i for i in gold["labels"] if i != -100] == new.tolist()
    assert right > 0 and told == pytest.approx(right / len(lines))


@pytest.mark.parametrize("name", ["t5-flan", "llama"])
def test_tokens_are_counted(home, tmp_path, name):
    counts = train(recipe(home, name, "agg-before", max_steps=1).run(), tmp_path / "run").counts
    model, tokenizer = pv.from_pretrained(tmp_path / "run")
    questions, answers = zip(
        *(line.split(",") for line in (home / "sums.csv").read_text().splitlines()[1:]), strict=True
    )
    pairs = pv.encode_pairs(tokenizer, list(questions), list(answers))
    asked = pv.encode_questions(tokenizer, list(questions))
    assert counts["question_tokens"] == sum(len(each["input_ids"]) for each in asked)
    assert counts["answer_tokens"] == sum(label != -100 for each in pairs for label in each["labels"])


def test_no_answer_is_cut_by_default(home, tmp_path):
    (tmp_path / "long.csv").write_text("question,answer\n" + "Many?,12345678901234567890123\n" * 4)
    values = {"model": str(home / "t5-flan"), "data": {"train": str(tmp_path / "long.csv")}, "methods": ["digits"]}
    assert prepare(make_recipe(values).run()).counts["cut_answers"] == 0
    assert prepare(make_recipe(values | {"training": {"max_answer": 16}}).run()).counts["cut_answers"] == 4


def test_a_run_with_problems_grouped_by_length_goes_on_with_the_same_batches(home, tmp_path):
    """Stopped in the middle of the second epoch."""
    run = recipe(home, group_by_length=True, max_steps=12, checkpoint_every=2, learning_rate=1e-2).run()

    def stop(step, _all):
        if step == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(run, tmp_path / "stopped", progress=stop)
    assert train(run, tmp_path / "stopped", resume=True).steps == train(run, tmp_path / "whole").steps == 12
    assert all(
        torch.equal(value, weights(tmp_path / "whole")[key]) for key, value in weights(tmp_path / "stopped").items()
    )
    plain = train(recipe(home, max_steps=12, checkpoint_every=2, learning_rate=1e-2).run(), tmp_path / "plain")
    assert plain.losses != read_record(tmp_path / "whole" / "train.json", TrainRecord).losses


SIMPLE = dict(optimizer="sgd", learning_rate=0.1, schedule="constant", warmup_steps=0, max_gradient=1e9)


@pytest.mark.parametrize("group", [False, True])
class TestSeedAndAccumulation:
    """With a model without dropout, so that only the order of the problems is left to chance."""

    def ends(self, home, folder, seed=42, **settings):
        """All weights after one step."""
        run = recipe(home, "calm", max_steps=1, checkpoint_every=1, **SIMPLE, **settings).run(seed=seed)
        train(run, folder)
        return torch.cat([value.flatten() for value in weights(folder).values()])

    def test_another_seed_is_another_run(self, home, tmp_path, group):
        one, two = (self.ends(home, tmp_path / str(seed), seed, group_by_length=group) for seed in (1, 2))
        assert not torch.allclose(one, two, rtol=1e-5, atol=1e-6)

    def test_batches_that_are_accumulated_equal_a_large_one(self, home, tmp_path, group):
        whole = self.ends(home, tmp_path / "whole", batch_size=8, group_by_length=group)
        parts = self.ends(home, tmp_path / "parts", batch_size=4, accumulation=2, group_by_length=group)
        torch.testing.assert_close(parts, whole, rtol=1e-5, atol=1e-6)


def test_what_the_base_was_trained_on_is_not_forgotten(home, tmp_path):
    (tmp_path / "more.csv").write_text("question,answer\n1 and 1?,2\n3 and 4?,7\n")
    first = train(recipe(home, method="untouched", max_steps=1).run(), tmp_path / "first")
    values = {"model": str(tmp_path / "first"), "methods": ["digits"], "data": {"train": str(tmp_path / "more.csv")}}
    second = train(make_recipe(values | {"training": {"max_steps": 1, "batch_size": 2}}).run(), tmp_path / "second")
    (before,), (*earlier, own) = first.trained_on, second.trained_on
    assert earlier == [before] and own.startswith("file:") and own != before
    assert json.loads((tmp_path / "second" / "config.json").read_text())[TRAINED_ON] == [before, own]


class TestFolders:
    def test_a_finished_run_is_left_as_it_is(self, home, tmp_path):
        run = recipe(home).run()
        first = train(run, tmp_path / "run")
        before = (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns
        assert train(run, tmp_path / "run") == first
        assert (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns == before

    def test_another_run_is_refused_by_what_differs(self, home, tmp_path):
        train(recipe(home).run(), tmp_path / "run")
        with pytest.raises(TrainingError, match=r"training.learning_rate is 0.0001 there and 0.5 here"):
            train(recipe(home, learning_rate=0.5).run(), tmp_path / "run")

    def test_data_that_changed_is_noticed(self, home, tmp_path):
        (tmp_path / "mine.csv").write_text((home / "sums.csv").read_text())
        values = {"model": str(home / "t5-flan"), "methods": ["digits"], "data": {"train": str(tmp_path / "mine.csv")}}
        run = make_recipe(values | {"training": {"max_steps": 4, "checkpoint_every": 2, "batch_size": 4}}).run()
        train(run, tmp_path / "run")
        (tmp_path / "mine.csv").write_text("question,answer\n1 and 1?,2\n")
        with pytest.raises(TrainingError, match="checksums"):
            train(run, tmp_path / "run")
        (tmp_path / "run" / "train.json").unlink()
        with pytest.raises(TrainingError, match="checksums"):
            train(run, tmp_path / "run", resume=True)

    def test_a_run_that_never_began_does_not_keep_its_folder(self, home, tmp_path):
        with pytest.raises(PlacevalueError):
            train(make_recipe({"model": str(tmp_path / "none"), "methods": ["digits"],
                               "data": {"train": str(home / "sums.csv")}}).run(), tmp_path / "run")  # fmt: skip
        assert train(recipe(home).run(), tmp_path / "run").steps == 6

    def test_a_run_of_an_earlier_version_is_ours(self, home, tmp_path):
        """Its `run.json` has no schema, and its record may be all that is left of it."""
        for record in (ROOT / "results").glob("*/*/train.json"):
            assert is_run(record.parent)
        values = recipe(home).run().to_dict() | {"checksums": {}, "processes": 1}
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "run.json").write_text(json.dumps(values))
        (tmp_path / "run" / "model.safetensors").touch()
        assert train(recipe(home).run(), tmp_path / "run").steps == 6

    def test_an_unfinished_run_is_not_started_over(self, home, tmp_path):
        train(recipe(home).run(), tmp_path / "run")
        (tmp_path / "run" / "train.json").unlink()
        with pytest.raises(TrainingError, match="stopped at checkpoint-6: pass resume=True"):
            train(recipe(home).run(), tmp_path / "run")

    def test_faults_of_data_and_model_come_before_training(self, home, tmp_path):
        (tmp_path / "words.csv").write_text("question,answer\nwho?,nobody\n")
        run = recipe(home)
        wrong = make_recipe(
            {"model": run.model, "methods": ["aux-soft"], "data": {"train": str(tmp_path / "words.csv")}}
        )
        with pytest.raises(TrainingError, match="contain no complete number"):
            train(wrong.run(), tmp_path / "run")


class TestRecipes:
    @pytest.fixture
    def path(self, home, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "toy.yaml").write_text(
            f"model: {home / 'calm'}\ndata: {{train: {home / 'sums.csv'}}}\nmethods: [digits, agg-before]\nseeds: [3]\n"
            "training: {max_steps: 1, batch_size: 4}\n"
        )
        return tmp_path / "toy.yaml"

    def test_a_file_names_the_folder(self, path):
        assert train(path).method == "digits" and Path("runs/toy/digits-3/train.json").exists()
        assert train(str(path), method="agg-before", seed=5).seed == 5
        assert Path("runs/toy/agg-before-5/train.json").exists()

    def test_without_a_file_the_folder_must_be_given(self, path, tmp_path):
        found = read_recipe(path)
        for given in (found, found.run()):
            with pytest.raises(ConfigError, match="out is missing: .* pass out=FOLDER"):
                train(given)
        with pytest.raises(ConfigError, match="the config of a run has both"):
            train(found.run(), tmp_path / "run", method="agg-before")
        first = train(found, tmp_path / "run", method="agg-before", seed=4)
        assert train(found.run("agg-before", 4), tmp_path / "run", False) == first


def command(run, folder, *more):
    """A run of training in a process of its own."""
    code = (
        "import json, sys; from placevalue.experiments.recipe import make_recipe; from placevalue.experiments.train import train\n"
        "train(make_recipe(json.loads(sys.argv[1])).run(), sys.argv[2], resume='--resume' in sys.argv)"
    )
    values = run.to_dict() | {"methods": [run.method], "seeds": [run.seed]}
    del values["method"], values["seed"]
    return ["-c", code, json.dumps(values), str(folder), *more]


def environment():
    return os.environ | {
        "PYTHONPATH": SOURCE,
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "HF_HUB_OFFLINE": "1",
    }


@pytest.mark.parametrize("name", ["t5-flan", "llama"])
@pytest.mark.slow
def test_a_killed_run_ends_with_the_weights_it_would_have_had(home, tmp_path, name):
    run = recipe(home, name, "agg-aux", max_steps=40, checkpoint_every=5, learning_rate=1e-3).run()
    subprocess.run([sys.executable, *command(run, tmp_path / "whole")], env=environment(), check=True, timeout=300)
    killed = subprocess.Popen([sys.executable, *command(run, tmp_path / "cut")], env=environment())
    while not (tmp_path / "cut" / "checkpoints" / "checkpoint-10" / "trainer_state.json").exists():
        assert killed.poll() is None
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "cut" / "train.json").exists()
    half = tmp_path / "cut" / "checkpoints" / "checkpoint-39"  # one that was not written to its end
    half.mkdir()
    subprocess.run(
        [sys.executable, *command(run, tmp_path / "cut", "--resume")], env=environment(), check=True, timeout=300
    )
    assert not half.exists()
    whole, cut = weights(tmp_path / "whole"), weights(tmp_path / "cut")
    assert whole.keys() == cut.keys() and all(torch.equal(value, cut[key]) for key, value in whole.items())
    steps = [row["step"] for row in read_record(tmp_path / "cut" / "train.json", TrainRecord).losses]
    assert steps == [row["step"] for row in read_record(tmp_path / "whole" / "train.json", TrainRecord).losses]


@pytest.mark.slow
def test_two_processes_equal_one(home, tmp_path):
    (home / "t5-flan-calm").mkdir(exist_ok=True)
    model, base = build("t5-flan")
    model.save_pretrained(home / "t5-flan-calm")
    base.save_pretrained(home / "t5-flan-calm")
    settings = dict(
        optimizer="sgd", learning_rate=0.1, schedule="constant", warmup_steps=0, max_steps=3, max_gradient=1e9
    )
    one = recipe(home, "t5-flan-calm", batch_size=8, **settings).run()
    train(one, tmp_path / "one")
    two = recipe(home, "t5-flan-calm", batch_size=4, **settings).run()
    script = tmp_path / "script.py"
    _, code, *rest = command(two, tmp_path / "two")
    script.write_text(code)
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script), *rest]
    subprocess.run(
        [sys.executable, *launch], env=environment() | {"ACCELERATE_USE_CPU": "true"}, check=True, timeout=300
    )
    start, first, second = weights(home / "t5-flan-calm"), weights(tmp_path / "one"), weights(tmp_path / "two")
    for key, value in first.items():
        torch.testing.assert_close(second[key], value, rtol=1e-5, atol=1e-6, msg=key)
    assert any(
        not torch.equal(value, start.get(key)) for key, value in first.items() if value.shape == start[key].shape
    )
    record = read_record(tmp_path / "two" / "train.json", TrainRecord)
    assert record.provenance["processes"] == 2
    (tmp_path / "two" / "train.json").unlink()
    with pytest.raises(TrainingError, match=r"a run of 2 process\(es\), and this is one of 1"):
        train(two, tmp_path / "two", resume=True)
    alone = read_record(tmp_path / "one" / "train.json", TrainRecord)
    for mine, theirs in zip(record.losses, alone.losses, strict=True):
        if "aux" in mine:
            assert mine["numbers"] == theirs["numbers"] and mine["aux"] == pytest.approx(theirs["aux"], rel=1e-4)


def test_logs_for_tensorboard_hold_both_parts(home, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(recipe(home, tensorboard=True).run(), tmp_path / "run")
    found = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    found.Reload()
    assert {"train/loss", "train/ce", "train/aux", "eval/loss"} <= set(found.Tags()["scalars"])


SHARDED = """
import os, sys
sys.path.insert(0, sys.argv[1])
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from transformers import DataCollatorForSeq2Seq
import placevalue as pv
from zoo import build

dist.init_process_group("gloo")
for name in ("t5-flan", "llama-tied"):
    for mode in ("soft", "hard"):
        sharded, base = build(name)
        tokenizer = pv.number_tokenizer(base, "agg")
        whole = build(name)[0]
        for model in (sharded, whole):
            pv.attach(model.train(), tokenizer)
        data = pv.encode_pairs(tokenizer, [f"{i} and 9?" for i in range(8)], [str(i) if i % 3 else "no" for i in range(8)])
        for block in (*sharded.encoder.block, *sharded.decoder.block) if name == "t5-flan" else sharded.model.layers:
            fully_shard(block)
        fully_shard(sharded)
        collate = DataCollatorForSeq2Seq(tokenizer, model=whole)
        items = sum(label != -100 for row in data for label in row["labels"])
        mine = data[4 * dist.get_rank() : 4 * dist.get_rank() + 4]
        for model, rows, times in ((sharded, mine, 2), (whole, data, 1)):
            loss, optimizer = pv.AggregationLoss(model, tokenizer, mode=mode), torch.optim.SGD(model.parameters(), lr=0.5)
            for _ in range(2):
                batch = collate(rows)
                (times * loss(model(**batch), batch["labels"], items)).backward()
                optimizer.step()
                optimizer.zero_grad()
        for key, value in whole.state_dict().items():
            torch.testing.assert_close(sharded.state_dict()[key].full_tensor(), value, rtol=1e-5, atol=1e-5, msg=key)
dist.barrier()
print("equal", flush=True)
os._exit(0)
"""


@pytest.mark.slow
def test_sharded_over_two_processes_the_loss_is_the_same(tmp_path):
    script = tmp_path / "sharded.py"
    script.write_text(SHARDED)
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [sys.executable, *launch, str(script), str(Path(__file__).parents[1])],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.count("equal") == 2, done.stderr[-3000:]


@pytest.mark.slow
def test_accelerate_launches_it(home, tmp_path):
    """One process: on a CPU accelerate starts no more, which torchrun does above."""
    (tmp_path / "r.yaml").write_text(
        f"model: {home / 't5-flan'}\ndata: {{train: {home / 'sums.csv'}}}\nmethods: [aux-soft]\n"
    )
    launch = ["-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1", "-m", "placevalue.cli", "train"]
    given = [str(tmp_path / "r.yaml"), "training.batch_size=4", "--max-steps", "2", "--out", str(tmp_path / "run")]
    subprocess.run([sys.executable, *launch, *given], env=environment(), check=True, timeout=300)
    assert read_record(tmp_path / "run" / "train.json", TrainRecord).steps == 2


def test_a_checkpoint_without_every_process_is_not_gone_on_from(home, tmp_path, monkeypatch):
    config, checksums = recipe(home).run(), {}
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert claim_folder(config, checksums, tmp_path, resume=False) is None
    for step, ranks in ((2, (0, 1)), (4, (0,))):
        checkpoint = tmp_path / "checkpoints" / f"checkpoint-{step}"
        checkpoint.mkdir(parents=True)
        (checkpoint / "trainer_state.json").write_text(json.dumps({"global_step": step, "max_steps": 6}))
        for rank in ranks:
            (checkpoint / f"rng_state_{rank}.pth").touch()
        mark_whole(checkpoint)
    assert claim_folder(config, checksums, tmp_path, resume=True).name == "checkpoint-2"
    (tmp_path / "checkpoints" / "checkpoint-2" / "rng_state_1.pth").unlink()
    monkeypatch.setenv("WORLD_SIZE", "1")  # no checkpoint is whole now, yet none may pass for one of a single process
    with pytest.raises(TrainingError, match=r"a run of 2 process\(es\), and this is one of 1"):
        claim_folder(config, checksums, tmp_path, resume=True)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(TrainingError, match="holds another run: training.learning_rate"):
        claim_folder(recipe(home, learning_rate=3e-3).run(), checksums, tmp_path, resume=True)
    with pytest.raises(TrainingError, match="--resume"):
        claim_folder(config, checksums, tmp_path, resume=False)
    assert claim_folder(config, checksums, tmp_path, resume=True) is None
    names = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert names == {"set-aside-checkpoint-2-1", "set-aside-checkpoint-4-1"}


def peak_of(folder):
    return read_record(folder / "train.json", TrainRecord).provenance.get("peak_memory", {})


def test_the_verb_resumes(home, tmp_path, capsys):
    (tmp_path / "r.yaml").write_text(
        f"model: {home / 't5-flan'}\ndata: {{train: {home / 'sums.csv'}}}\nmethods: [agg-aux]\n"
        "training: {checkpoint_every: 2, batch_size: 4, log_every: 1}\n"
    )
    command = ["train", str(tmp_path / "r.yaml"), "--max-steps", "4", "--out", str(tmp_path / "run")]
    assert main(command) == 0
    before = weights(tmp_path / "run")
    assert all(size > 1e6 for size in peak_of(tmp_path / "run").values())
    (tmp_path / "run" / "train.json").unlink()
    assert main(command) == 1 and "--resume" in capsys.readouterr().err
    assert main([*command, "--resume"]) == 0
    assert "4 steps" in capsys.readouterr().out
    assert peak_of(tmp_path / "run") == {}, "nothing was left to train"
    assert all(torch.equal(value, before[key]) for key, value in weights(tmp_path / "run").items())


def test_a_model_with_agg_is_no_base(home, tmp_path):
    """Trained further without its hooks it would not be the model that was given."""
    train(recipe(home, method="agg-before").run(), tmp_path / "run")
    again = recipe(tmp_path, "run", "untouched")
    again = replace(again, data=recipe(home).data)
    assert any("through [AGG]" in fault for fault in find_obstacles(again, tmp_path / "again"))
    with pytest.raises(ModelError, match=r"through \[AGG\].*give the model it was trained from"):
        train(again.run(), tmp_path / "again")
