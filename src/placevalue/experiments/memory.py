"""The most memory that training takes, on its device and in its process."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import torch

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESTART_PEAK = "5"  # what Linux takes as: the peak is what there is now


@contextlib.contextmanager
def peak_memory(device: torch.device) -> Iterator[dict[str, int]]:
    """The peak of the block in bytes, once it ends: of a CUDA `device`, else of the `process`; empty if unknown.

    It restarts the peaks that CUDA and Linux keep of this process, so that earlier runs do not count.
    """
    found: dict[str, int] = {}
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        yield found
        found["device"] = torch.cuda.max_memory_allocated(device)
        return
    restarted = False
    with contextlib.suppress(OSError):
        _RESET.write_text(_RESTART_PEAK)
        restarted = True
    yield found
    if restarted and (peak := re.search(r"VmHWM:\s*(\d+) kB", _STATUS.read_text())):
        found["process"] = int(peak[1]) * 1024
