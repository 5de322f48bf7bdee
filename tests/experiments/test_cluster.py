"""Runs on the machines of a Ray cluster: two nodes on this machine, one of which dies."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

import placevalue as pv
from placevalue.cli.main import main
from placevalue.common.errors import ConfigError, PlacevalueError
from placevalue.experiments import cluster as cluster_module
from placevalue.experiments import ray_connection
from placevalue.experiments.cluster import MARK, Cluster, Machines, _Task
from placevalue.experiments.methods import METHODS
from placevalue.experiments.recipe import read_recipe
from placevalue.experiments.runner import make_errand, plan_experiment, reproduce
from placevalue.experiments.sweep import plan_sweep, sweep
from zoo import build

SOURCE = str(Path(pv.__file__).parents[1])
CE = "training.ce_weight"
RECIPE = """
model: {home}/model
data: {{train: {home}/sums.csv, dev: {home}/sums.csv, test: [{home}/sums.csv]}}
methods: [digits, aux-soft]
seeds: [1]
training: {{max_steps: 6, checkpoint_every: 2, batch_size: 4, warmup_steps: 1, log_every: 2, learning_rate: 1e-2}}
generation: {{beams: 1, batch_size: 8}}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    for part in build("t5-flan"):
        part.save_pretrained(folder / "model")
    rows = "".join(f"{i} and {i + 3} more?,{2 * i + 3}\n" for i in range(16))
    (folder / "sums.csv").write_text("question,answer\n" + rows)
    (folder / "toy.yaml").write_text(RECIPE.format(home=folder))
    return folder


@pytest.fixture(scope="module")
def recipe(home):
    return read_recipe(home / "toy.yaml")


@pytest.fixture(scope="module")
def nodes():
    """A cluster of two nodes with room for one run each; the first is its head."""
    pytest.importorskip("ray", reason="needs ray: pip install 'placevalue[cluster]'")
    from ray.cluster_utils import Cluster as Nodes

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", os.pathsep.join([SOURCE, *sys.path[1:]]))
        settings = {"health_check_period_ms": 500, "health_check_failure_threshold": 4}
        head = {"num_cpus": 1, "include_dashboard": False, "_system_config": settings}
        found = Nodes(initialize_head=True, head_node_args=head)
        found.add_node(num_cpus=1)
        yield found
        found.shutdown()


@pytest.fixture(scope="module")
def alone(recipe, tmp_path_factory):
    """The experiment without a cluster."""
    out = tmp_path_factory.mktemp("alone")
    reproduce(recipe, out, keep="records")
    return out


def losses(folder):
    rows = json.loads((Path(folder) / "train.json").read_text())["losses"]
    return [(row["step"], row["loss"]) for row in rows if "loss" in row]


def first_checkpoint(folder):
    """When the first checkpoint of a run was written."""
    return (folder / "checkpoints" / "checkpoint-20" / "model.safetensors").stat().st_mtime_ns


def answers(folder):
    return {path.parts[-3]: path.read_text() for path in Path(folder).glob("*/predictions/predictions.jsonl")}


@pytest.mark.cluster
def test_a_node_that_dies_costs_its_run_nothing_but_time(recipe, nodes, tmp_path, caplog):
    """Killed when its run has a checkpoint; the run continues from there on the other node."""
    longer = replace(recipe, training=replace(recipe.training, max_steps=300, checkpoint_every=20, keep_checkpoints=99))
    second = next(iter(nodes.worker_nodes))
    killed, began = [], {}

    def kill():
        """Once both runs that are first have a checkpoint: one of them is on the second node."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and len(list(tmp_path.glob("out/*/checkpoints/checkpoint-40"))) < 2:
            time.sleep(0.02)
        killed.extend(path.parts[-3] for path in tmp_path.glob("out/*/checkpoints/checkpoint-40"))
        began.update({name: first_checkpoint(tmp_path / "out" / name) for name in killed})
        nodes.remove_node(second, allow_graceful=False)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        reproduce(longer, tmp_path / "out", keep="everything", cluster=Cluster(nodes.address))
    finally:
        thread.join()
        nodes.add_node(num_cpus=1)
    assert len(killed) == 2 and not plan_experiment(longer, tmp_path / "out").todo
    (again,) = [text for text in caplog.messages if "starting it again" in text]
    name = again.partition(":")[0]
    assert name in killed and first_checkpoint(tmp_path / "out" / name) == began[name], "it did not start over"
    log = (tmp_path / "out" / "logs" / f"{name}.log").read_text()
    assert log.count(f"on {socket.gethostname()}, process") == 2
    assert all(
        (tmp_path / "out" / "logs" / f"{each}.log").read_text().count("process") == 1
        for each in ("untouched-1", "digits-1", "aux-soft-1")
        if each != name
    )
    reproduce(longer, tmp_path / "whole", keep="records")
    assert answers(tmp_path / "out") == answers(tmp_path / "whole")
    assert losses(tmp_path / "out" / name) == losses(tmp_path / "whole" / name)
    assert not list((tmp_path / "out").glob(f"{MARK}*"))


@pytest.mark.cluster
def test_what_the_machines_do_not_share_comes_back(home, recipe, alone, nodes, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(cluster_module, "MARK", ".a-name-that-no-machine-looks-for")
    told = []
    out = tmp_path / "out"
    reproduce(recipe, out, cluster=Cluster(nodes.address), progress=lambda *event: told.append(event))
    assert "runs bring their files back" in caplog.text
    assert answers(out) == answers(alone) and not plan_experiment(recipe, out).todo
    assert len(list(out.glob("*/model.safetensors"))) == 3 and not list(out.glob("*/checkpoints"))
    assert {event[0] for event in told} == {path.stem for path in (out / "logs").iterdir()} == set(answers(alone))
    assert not list(out.glob(".arriving*"))

    made = {path: path.read_text() for path in out.glob("*/train.json")}
    answered = replace(recipe, generation=replace(recipe.generation, beams=2))
    reproduce(answered, out, keep="records", cluster=Cluster(nodes.address))
    assert not list(out.glob("*/model.safetensors")), "keep counts for what was here too"
    assert not plan_experiment(answered, out).todo and (out / "stale" / "digits-1-predictions-1").is_dir()
    assert {path: path.read_text() for path in made} == made, "nothing is trained again"

    monkeypatch.setattr("placevalue.experiments.runner.data_checksum", lambda _spec: "of other data")
    with pytest.raises(PlacevalueError, match="digits-1: DataError: its machine has other data or another model"):
        reproduce(recipe, tmp_path / "other", cluster=Cluster(nodes.address))


@pytest.mark.cluster
def test_runs_share_a_gpu(recipe, alone, nodes, tmp_path):
    """One that Ray counts; the runs compute on the CPU."""
    third = nodes.add_node(num_cpus=4, num_gpus=1)
    try:
        reproduce(recipe, tmp_path, keep="records", cluster=Cluster(nodes.address, gpus=0.5))
    finally:
        nodes.remove_node(third)
    assert answers(tmp_path) == answers(alone)


@pytest.mark.parametrize(
    "settings, has, places",
    [
        ({"gpus": 0.25}, {"CPU": 16.0, "GPU": 2.0}, 8),
        ({"gpus": 0.25}, {"CPU": 3.0, "GPU": 2.0}, 3),
        ({"gpus": 0.1}, {"CPU": 16.0, "GPU": 1.0}, 10),
        ({"gpus": 2}, {"CPU": 16.0, "GPU": 5.0}, 2),
        ({"gpus": 0, "cpus": 4}, {"CPU": 15.0}, 3),
        ({"gpus": 1}, {"CPU": 15.0}, 0),
    ],
)
def test_places_of_a_machine(settings, has, places, tmp_path):
    room = Machines(print, tmp_path, Cluster("auto", **settings))
    room.gpus = settings["gpus"]
    assert room._places({"Alive": True, "Resources": has}) == places
    assert room._places({"Alive": False, "Resources": has}) == 0


def test_a_machine_that_does_not_know_a_method_says_so(recipe, tmp_path, monkeypatch):
    errand = make_errand(recipe, recipe.run("digits", 1), tmp_path / "digits-1")
    errand.check()
    monkeypatch.setattr("placevalue.experiments.recipe.METHODS", {"untouched": METHODS["untouched"]})
    with pytest.raises(ConfigError, match="method 'digits' is unknown.*does not reach the machines of a cluster"):
        errand.check()


def test_what_a_run_removed_elsewhere_is_removed_here(tmp_path):
    """Such as the weights that `--keep records` does not keep."""
    arriving = tmp_path / ".arriving"
    for path in ("run/model.safetensors", "run/train.json", "run/notes", ".arriving/run/train.json"):
        (tmp_path / path).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / path).write_text(path)
    lent = "run/model.safetensors", "run/train.json"
    Machines(print, tmp_path, Cluster("auto"))._take(_Task("run", None, 0, arriving, lent))
    assert {path.name: path.read_text() for path in tmp_path.rglob("*") if path.is_file()} == {
        "train.json": ".arriving/run/train.json", "notes": "run/notes",
    }  # fmt: skip


@pytest.mark.cluster
@pytest.mark.parametrize("sampler", ["grid", "tpe"])
def test_a_sweep_does_its_runs_on_the_machines(home, recipe, nodes, tmp_path, sampler):
    values = {"searches": [f"{CE}=0.4:0.6:0.1"], "method": "aux-soft", "seeds": [1, 2]}
    values |= {"sampler": "tpe", "trials": 2} if sampler == "tpe" else {"searches": [f"{CE}=0.4,0.6"]}
    told = []
    plan = plan_sweep(recipe, **values)
    found = sweep(plan, tmp_path / "out", cluster=Cluster(nodes.address), progress=lambda *event: told.append(event))
    assert len(found.trials) == found.planned == 2 and told[-1][:2] == (4, 4)
    if sampler == "grid":
        expected = sweep(plan, tmp_path / "alone")
        assert found.trials == expected.trials and found.best == expected.best
    assert all(set(trial["scores"]) == {"1", "2"} for trial in found.trials)
    assert not list((tmp_path / "out").rglob("model.safetensors"))


@pytest.mark.cluster
def test_ctrl_c_ends_what_runs_elsewhere_too(home, nodes, tmp_path):
    words = ["reproduce", str(home / "toy.yaml"), "--cluster", nodes.address, "--out", str(tmp_path / "out")]
    words += ["training.max_steps=4000", "training.checkpoint_every=2000"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "placevalue.cli", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, env=environment, start_new_session=True, **pipes)
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("out/*/.in-use"))) < 2 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in printed
    assert printed.rstrip().endswith("placevalue: interrupted. Run the same command again to continue.")
    assert not list(tmp_path.rglob(".*in-use")) and not list((tmp_path / "out").glob(f"{MARK}*"))


@pytest.mark.cluster
def test_what_answers_and_is_no_cluster_is_not_waited_for(monkeypatch, tmp_path):
    pytest.importorskip("ray", reason="needs ray: pip install 'placevalue[cluster]'")
    monkeypatch.setattr(ray_connection, "SECONDS_TO_ANSWER", 8.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with (
            pytest.raises(ConfigError, match="does not answer as Ray does within 8 s"),
            ray_connection.connected(address),
        ):
            pass


def test_faults_of_a_cluster_are_told_before_anything_runs(home, recipe, tmp_path, capsys, monkeypatch):
    pytest.importorskip("ray", reason="needs ray: pip install 'placevalue[cluster]'")
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"127.0.0.1:{server.getsockname()[1]}"
    for address, said in (
        (closed, "cannot be reached: ConnectionRefusedError"),
        ("ray://head:10001", "Start the command on a machine of the cluster"),
        ("head", "expected HOST:PORT, auto or local"),
        ("head:port", "expected HOST:PORT, auto or local"),
    ):
        with pytest.raises(ConfigError, match=said):
            reproduce(recipe, tmp_path / "out", cluster=Cluster(address))
    for settings, said in (
        ({"gpus": 1.5}, "1.5 GPUs for each run: expected a fraction of 1, or a whole number"),
        ({"gpus": -1}, "-1 GPUs for each run"),
        ({"cpus": 0}, "0 CPU cores for each run: expected more than 0"),
    ):
        with pytest.raises(ConfigError, match=said):
            Cluster("auto", **settings)
    command = ["reproduce", str(home / "toy.yaml"), "--out", str(tmp_path / "out"), "--gpus-per-run", "0.25"]
    assert main(command) == 1
    assert "--gpus-per-run has no effect without --cluster ADDRESS" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main([*command, "--cluster", closed]) == 1
    assert "--cluster needs ray: pip install 'placevalue[cluster]'" in capsys.readouterr().err
    assert not list((tmp_path / "out").glob("*-1"))


@pytest.mark.cluster
def test_a_run_that_no_machine_has_room_for(recipe, nodes, tmp_path):
    for asked, said in ((Cluster(nodes.address, gpus=0.5), "0.5 GPUs"), (Cluster(nodes.address, cpus=64), "64 CPU")):
        with pytest.raises(ConfigError, match=f"no machine of the cluster .* has .*{said}"):
            reproduce(recipe, tmp_path, cluster=asked)


@pytest.mark.cluster
def test_the_environment_stays_as_it_was(nodes, monkeypatch):
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED")
    before = dict(os.environ), signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with ray_connection.connected(nodes.address) as ray:
        assert len(ray.nodes()) >= 2
        with ray_connection.connected("anything"):  # a connection that is there is used
            pass
        assert ray.is_initialized()
    assert not ray.is_initialized()
    assert before == (dict(os.environ), signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))


class Told:
    """A room whose runs end at once, in the order they began, with what is said beforehand."""

    def __init__(self, size, ends):
        self.size, self.ends, self.tasks, self.most = size, ends, [], 0

    @property
    def running(self):
        return len(self.tasks)

    @property
    def is_full(self):
        return len(self.tasks) >= self.size

    def start(self, name, piece):
        self.tasks.append((name, piece))
        self.most = max(self.most, len(self.tasks))

    def wait(self):
        name, piece = self.tasks.pop(0)
        return [(name, "progress", ()), (name, *self.ends(piece.config))]


class TestTrials:
    """Several at once, without a cluster."""

    def search(self, recipe, folder, monkeypatch, ends, size=4, **values):
        room = Told(size, ends)

        class Machines:
            def __init__(self, *_):
                pass

            __enter__ = lambda self: room  # noqa: E731
            __exit__ = lambda self, *_: None  # noqa: E731

        monkeypatch.setattr("placevalue.experiments.sweep.Machines", Machines)
        values = {"searches": [f"{CE}=0.4:0.7:0.1"], "method": "aux-soft", "seeds": [1, 2]} | values
        return room, lambda: sweep(plan_sweep(recipe, **values), folder, cluster=Cluster("auto"))

    def score(self, config):
        value = config.training.ce_weight + config.seed / 100
        return "done", ("score", {"value": value, "low": value, "high": value, "n": 8})

    @pytest.mark.parametrize("size", [1, 3, 50])
    def test_each_point_is_tried_once(self, recipe, tmp_path, monkeypatch, size):
        room, work = self.search(recipe, tmp_path, monkeypatch, self.score, size)
        found = work()
        assert [trial["values"][CE] for trial in found.trials] == [0.4, 0.5, 0.6, 0.7]
        assert found.best["values"] == {CE: 0.7} and found.best["value"] == pytest.approx(0.715)
        assert room.most == min(size, 8)

    def test_tpe_tries_as_many_as_it_should(self, recipe, tmp_path, monkeypatch):
        search = {"searches": [f"{CE}=0.1:0.9"], "sampler": "tpe", "trials": 5}
        _, work = self.search(recipe, tmp_path, monkeypatch, self.score, 7, **search)
        found = work()
        assert len(found.trials) == 5 and len({trial["values"][CE] for trial in found.trials}) == 5

    def test_a_trial_that_fails_leaves_the_others(self, recipe, tmp_path, monkeypatch):
        def ends(config):
            if config.training.ce_weight == 0.5 and config.seed == 1:
                return "done", ("failed", "no memory")
            return ("died", "gone") if config.training.ce_weight == 0.6 else self.score(config)

        for size in (1, 4):
            folder = tmp_path / str(size)
            _, work = self.search(recipe, folder, monkeypatch, ends, size)
            with pytest.raises(
                PlacevalueError, match="2 of 4 trials failed.*ce_weight=0.5: no memory; ce_weight=0.6: gone"
            ):
                work()
            _, work = self.search(recipe, folder, monkeypatch, self.score)
            assert len(work().trials) == 4

    def test_with_tpe_it_ends_the_sweep(self, recipe, tmp_path, monkeypatch):
        search = {"searches": [f"{CE}=0.1:0.9"], "sampler": "tpe", "trials": 5}
        _, work = self.search(recipe, tmp_path, monkeypatch, lambda _: ("died", "gone"), **search)
        with pytest.raises(PlacevalueError, match="failed: gone"):
            work()
