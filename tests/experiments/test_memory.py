import pytest
import torch

from placevalue.experiments import memory
from placevalue.experiments.memory import peak_memory

CPU, LARGE = torch.device("cpu"), 64 * 2**20


def peak(size):
    with peak_memory(CPU) as found:
        torch.ones(size, dtype=torch.uint8)
    return found


def test_the_peak_of_a_process_is_that_of_the_block_alone():
    large, small = peak(LARGE), peak(1)
    if not large:
        pytest.skip("this system does not tell the peak of a process")
    assert large.keys() == {"process"} and large["process"] - small["process"] > LARGE / 2


def test_an_unknown_peak_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_RESET", tmp_path / "none" / "clear_refs")
    assert peak(LARGE) == {}


def test_on_a_cuda_device_it_is_what_torch_counted_since_the_block_began(monkeypatch):
    counted = {"bytes": 7}
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda _: counted.update(bytes=0))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _: counted["bytes"])
    with peak_memory(torch.device("cuda", 0)) as found:
        counted["bytes"] += 5
    assert found == {"device": 5}
