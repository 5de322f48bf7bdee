"""Connect to a Ray cluster, or say within seconds why not."""

import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from placevalue.common.errors import ConfigError, PlacevalueError, in_one_line

SECONDS_TO_CONNECT, SECONDS_TO_ANSWER = 10.0, 60.0
_TRY = "import logging, ray, sys; ray.init(sys.argv[1], log_to_driver=False, logging_level=logging.ERROR)"
_NEEDED = "--cluster needs ray: pip install 'placevalue[cluster]' here and on the machines of the cluster"


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """The module ray, connected; a connection that is there is used, and left as it is."""
    try:
        import ray
    except ImportError:
        raise PlacevalueError(_NEEDED) from None
    if ray.is_initialized():
        yield ray
        return
    if "://" in address:
        raise ConfigError(
            f"the cluster {address!r}: expected HOST:PORT, auto or local. Start the command on a machine of the "
            "cluster, since a client from outside cannot follow its runs"
        )
    _check_reachable(address)
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with _no_telemetry():
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ConfigError(f"the cluster {address!r} cannot be used: {in_one_line(error)}") from None
    finally:
        if main:
            signal.signal(signal.SIGTERM, handler)
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Refuse an address that is no cluster, by another process: Ray would wait for minutes, or end this one."""
    if address == "local":
        return
    if address != "auto":
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise ConfigError(f"the cluster {address!r}: expected HOST:PORT, auto or local")
        try:
            socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_CONNECT).close()
        except (OSError, OverflowError) as error:
            raise ConfigError(
                f"the cluster {address!r} cannot be reached: {in_one_line(error)}. Is `ray start --head` running there?"
            ) from None
    try:
        with _no_telemetry():
            command = [sys.executable, "-c", _TRY, address]
            tried = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_TO_ANSWER, check=False)
    except subprocess.TimeoutExpired:
        raise ConfigError(
            f"the cluster {address!r} does not answer as Ray does within {SECONDS_TO_ANSWER:.0f} s: give the address "
            "that `ray start --head` printed, and start the command on a machine of the cluster"
        ) from None
    if tried.returncode:
        found = re.search(r"^[\w.]+(Error|Exception)\b.*", tried.stderr, re.MULTILINE | re.DOTALL)
        told = " ".join((found[0] if found else tried.stderr[-300:]).split())
        raise ConfigError(f"the cluster {address!r} cannot be used: {told or 'Ray ended'}")


@contextmanager
def _no_telemetry() -> Iterator[None]:
    """Ray reports no usage from what is started meanwhile."""
    name = "RAY_USAGE_STATS_ENABLED"
    before = os.environ.get(name)
    os.environ[name] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
