"""Recipes as people need them: adapters, chat templates, trackers; trained, resumed, answered and compared."""

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file

import placevalue as pv
from placevalue.common.errors import ConfigError, TrainingError
from placevalue.common.records import ScoreRecord, read_record
from placevalue.experiments.generator import read_checkpoint
from placevalue.experiments.methods import METHODS
from placevalue.experiments.recipe import make_recipe, read_recipe
from placevalue.tokenizer.encoding import encode_questions
from placevalue.tokenizer.prompt import Prompt, chat_parts
from zoo import build

EXAMPLE = Path(__file__).parents[2] / "examples" / "my-chat-model.yaml"
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SHORT = {
    "max_steps": 4,
    "checkpoint_every": 2,
    "batch_size": 4,
    "log_every": 2,
    "warmup_steps": 1,
    "learning_rate": 0.01,
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A chat model, an encoder-decoder, and problems in files with columns of their own."""
    folder = tmp_path_factory.mktemp("home")
    for name in ("llama", "t5-flan"):
        model, base = build(name)
        base.chat_template = CHAT if name == "llama" else None
        model.save_pretrained(folder / name)
        base.save_pretrained(folder / name)
        base.chat_template = None  # other tests use it too
    rows = [{"Problem": f"{i} and {i + 3} more?", "Result": 2 * i + 3} for i in range(16)]
    (folder / "test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "dev.csv").write_text("Problem,Result\n" + "".join(f"{i} plus 1?,{i + 1}\n" for i in range(8)))
    from datasets import Dataset

    Dataset.from_list(rows).to_parquet(folder / "train.parquet")
    return folder


def recipe(home, model="llama", method="agg-before", **sections):
    data = {"train": str(home / "train.parquet"), "dev": str(home / "dev.csv")}
    data |= {"columns": {"question": "Problem", "answer": "Result"}}
    training = SHORT | sections.pop("training", {})
    given = {"model": str(home / model), "data": data, "methods": [method], "training": training}
    return make_recipe(given | {"lora": {"rank": 4}} | sections)


@pytest.mark.parametrize(
    ("model", "method"),
    [
        ("llama", "agg-before"),
        ("t5-flan", "aux-soft"),
        ("llama", "untouched"),
        ("t5-flan", "agg-before"),
        ("llama", "place"),
    ],
)
def test_an_adapter_trains_resumes_and_answers(home, tmp_path, model, method):
    config = recipe(home, model, method).run()
    record = pv.train(config, tmp_path / "run")
    assert 0 < record.counts["trained_parameters"] < record.counts["parameters"]
    assert "adapter_model.safetensors" in record.files and not (tmp_path / "run" / "model.safetensors").exists()
    whole = load_file(tmp_path / "run" / "adapter_model.safetensors")
    assert any(weight.abs().sum() > 0 for name, weight in whole.items() if "lora_B" in name)
    assert pv.train(config, tmp_path / "run") == record  # finished already

    half = recipe(home, model, method, training={"max_steps": 2}).run()
    pv.train(half, tmp_path / "half")
    stopped = tmp_path / "stopped"
    pv.train(config, stopped)
    for path in (stopped / "train.json", stopped / "adapter_model.safetensors"):
        path.unlink()
    for path in (stopped / "checkpoints" / "checkpoint-4").iterdir():
        path.unlink()
    (stopped / "checkpoints" / "checkpoint-4").rmdir()
    pv.train(config, stopped, resume=True)
    again = load_file(stopped / "adapter_model.safetensors")
    assert whole.keys() == again.keys() and all((whole[name] == again[name]).all() for name in whole)

    found = pv.predict(
        tmp_path / "run", [str(home / "dev.csv") + "?question=Problem&answer=Result"], tmp_path / "answers"
    )
    assert found.counts["problems"] == 8 and read_checkpoint(tmp_path / "run").base == str(home / model)
    pv.predict(
        tmp_path / "run/checkpoints/checkpoint-2", ["mawps:dev"], tmp_path / "other", max_answer=2, batch_size=400
    )
    if method != "untouched":
        loaded, tokenizer = pv.from_pretrained(tmp_path / "run")
        assert pv.is_attached(loaded) and bool(pv.marker_ids(tokenizer)) == METHODS[method].markers
    assert any("placevalue_vector" in name and each.any() for name, each in whole.items()) == (method == "place")


def test_a_damaged_adapter_is_noticed(home, tmp_path):
    config = recipe(home).run()
    pv.train(config, tmp_path / "run")
    (tmp_path / "run" / "adapter_model.safetensors").write_bytes(b"torn")
    with pytest.raises(Exception, match="adapter_model.safetensors does not fit its checksum"):
        pv.predict(tmp_path / "run", ["mawps:dev"], tmp_path / "answers")
    pv.train(config, tmp_path / "run")  # the checkpoint has the same adapter
    assert len(load_file(tmp_path / "run" / "adapter_model.safetensors"))


def test_a_chat_template_goes_around_every_question(home, tmp_path):
    prompt = {"chat": True, "system": "Answer with 1 number."}
    config = recipe(home, prompt=prompt, lora={}).run()
    pv.train(config, tmp_path / "run")
    checkpoint = read_checkpoint(tmp_path / "run")
    before, after = chat_parts(checkpoint.tokenizer, Prompt(**prompt))
    assert before == "<|im_start|>system\nAnswer with 1 number.<|im_end|>\n<|im_start|>user\n"
    assert after == "<|im_end|>\n<|im_start|>assistant\n"
    whole = checkpoint.tokenizer(f"{before}3 and 4?{after}", add_special_tokens=False)["input_ids"]
    (encoded,) = encode_questions(checkpoint.tokenizer, ["3 and 4?"], encoder_decoder=False, prompt=Prompt(**prompt))
    assert encoded["input_ids"] == whole
    from placevalue.experiments.predict import assign_problems

    asked = assign_problems(tmp_path / "run", [str(home / "test.jsonl") + "?question=Problem&answer=Result"])
    start, end = (checkpoint.tokenizer(part, add_special_tokens=False)["input_ids"] for part in (before, after))
    for ids in asked.questions:
        assert ids[: len(start)] == start and ids[-len(end) :] == end


def test_what_cannot_be_is_refused(home, tmp_path):
    with pytest.raises(ConfigError, match=r"lora.rank=0: expected more than 0; .*lora.dropout=1"):
        recipe(home, lora={"rank": 0, "dropout": 1})
    with pytest.raises(ConfigError, match="lora.alpha=16 has no effect without lora.rank"):
        recipe(home, lora={"alpha": 16})
    with pytest.raises(ConfigError, match="engine=fast trains all weights"):
        recipe(home, training={"engine": "fast"})
    with pytest.raises(ConfigError, match="report_to.*wandb"):
        recipe(home, training={"report_to": ["wandv"]})
    with pytest.raises(ConfigError, match="prompt.system has no effect"):
        recipe(home, prompt={"system": "Be brief."})
    with pytest.raises(ConfigError, match="is for decoder-only models"):
        pv.train(recipe(home, "t5-flan", prompt={"chat": True}).run(), tmp_path / "a")
    _, base = build("llama")
    with pytest.raises(ConfigError, match="no chat template"):
        chat_parts(base, Prompt(chat=True))
    base.chat_template = "{{ raise_exception('no system here') }}"
    with pytest.raises(ConfigError, match="refuses this: no system here"):
        chat_parts(base, Prompt(chat=True))
    with pytest.raises(TrainingError, match=r"PEFT cannot adapt .*such as .*q_proj"):
        pv.train(recipe(home, lora={"rank": 2, "targets": ["nothing"]}).run(), tmp_path / "b")


def test_another_rank_is_another_run(home, tmp_path):
    pv.train(recipe(home).run(), tmp_path / "run")
    with pytest.raises(TrainingError, match="lora.rank is 4 there and 8 here"):
        pv.train(recipe(home, lora={"rank": 8}).run(), tmp_path / "run")


@pytest.mark.slow
def test_trackers_get_what_trainer_logs(home, tmp_path, monkeypatch):
    """TensorBoard, W&B and MLflow, all without a server."""
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path), "WANDB_SILENT": "true",
        "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db", "MLFLOW_ALLOW_FILE_STORE": "true",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    trackers = ["tensorboard", *(name for name in ("wandb", "mlflow") if pytest.importorskip(name))]
    pv.train(recipe(home, training={"report_to": trackers}).run(), tmp_path / "run")
    assert list((tmp_path / "run" / "tensorboard").glob("events*"))
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    import mlflow

    (run,) = mlflow.search_runs(search_all_experiments=True, output_format="list")
    assert "loss" in run.data.metrics and run.info.run_name == "run"


def test_a_tracker_that_is_not_installed_is_refused_at_once(home, tmp_path, monkeypatch):
    monkeypatch.setattr("placevalue.experiments.callbacks.find_spec", lambda _name: None)
    with pytest.raises(ConfigError, match="report_to=mlflow needs mlflow: pip install mlflow"):
        pv.train(recipe(home, training={"report_to": ["mlflow"]}).run(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_example_runs(home, tmp_path, monkeypatch):
    monkeypatch.chdir(home)
    small = [f"training.{name}={value}" for name, value in SHORT.items()]
    example = read_recipe(EXAMPLE, [f"model={home / 'llama'}", "seeds=[1]", "generation.beams=1", *small])
    pv.reproduce(example, tmp_path / "out")
    for method in example.methods:
        scores = read_record(tmp_path / "out" / f"{method}-1" / "predictions" / "score.json", ScoreRecord)
        assert next(iter(scores.scores.values()))["accuracy_paper"]["n"] == 16
        assert list((tmp_path / "out" / f"{method}-1" / "tensorboard").iterdir())
