import errno
from pathlib import Path

import pytest
import torch

from placevalue.common.errors import PlacevalueError
from placevalue.common.room import room_for

FULL = Path("/dev/full")  # takes no byte, as a full disk does

pytestmark = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


def test_the_error_names_path_and_room(tmp_path):
    with (
        pytest.raises(PlacevalueError) as caught,
        room_for(tmp_path / "deep" / "a.json", 2_500_000),
        FULL.open("w") as file,
    ):
        file.write("x")
    told = f"{tmp_path}/deep/a.json could not be written: it needs 2 MB, and "
    assert str(caught.value).startswith(told) and "free on its disk (No space left on device). Make" in str(
        caught.value
    )


def test_so_do_errors_of_other_libraries():
    with (
        pytest.raises(PlacevalueError, match="checkpoint could not be written: it needs 9 bytes"),
        room_for("checkpoint", 9),
    ):
        torch.save({"a": torch.ones(9)}, FULL)
    with (
        pytest.raises(PlacevalueError, match="checkpoint could not be written: it needs 9 bytes"),
        room_for("checkpoint", lambda: 9),
    ):
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError:
            raise AssertionError("a library failed")  # noqa: B904


def test_other_errors_are_left_as_they_are(tmp_path):
    for error in (FileNotFoundError(2, "No such file"), ValueError("no"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught, room_for(tmp_path, 9):
            raise error
        assert caught.value is error


def test_the_inner_path_is_named_or_else_the_whole(tmp_path):
    def fill():
        with room_for("a.json", 1), FULL.open("w") as file:
            file.write("x")

    with pytest.raises(PlacevalueError, match=r"a\.json could not"), room_for("checkpoint", 9):
        fill()
    with pytest.raises(PlacevalueError, match="checkpoint could not be written: it needs 9 bytes"):  # noqa: SIM117
        with room_for("checkpoint", 9, whole=True):
            fill()
