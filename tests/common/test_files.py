import json

import pytest

from placevalue.common.errors import DataError
from placevalue.common.files import (
    copy_whole,
    file_hash,
    known_hash,
    read_json,
    read_json_lines,
    write_json,
    write_whole,
)


def test_a_file_comes_back_as_it_was_written_and_nothing_stays_beside_it(tmp_path):
    path = write_json(tmp_path / "deep" / "record.json", {"name": "½", "value": 3})
    assert read_json(path) == {"name": "½", "value": 3}
    assert [each.name for each in path.parent.iterdir()] == ["record.json"]
    (tmp_path / "other").touch()
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode
    assert len(file_hash(path)) == 64


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch, moment):
    path = write_whole(tmp_path / "a.txt", "old")
    target = "placevalue.common.files.os.fsync" if moment == "fsync" else "placevalue.common.files.Path.replace"

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(target, stop)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, "new")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_file_is_copied_whole_or_not_at_all(tmp_path, monkeypatch):
    source = write_whole(tmp_path / "a", b"new")
    target = write_whole(tmp_path / "b", b"old")
    (tmp_path / ".b-0123abcd").touch()  # left by a process that was killed
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("placevalue.common.files.os.fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        copy_whole(source, target)
    assert target.read_bytes() == b"old" and sorted(tmp_path.iterdir()) == [source, target]
    assert copy_whole(source, target).read_bytes() == b"new" and sorted(tmp_path.iterdir()) == [source, target]


def test_a_hash_is_computed_again_when_the_file_changed(tmp_path, monkeypatch):
    path = write_whole(tmp_path / "a", b"one")
    first = known_hash(path)
    with monkeypatch.context() as patch:
        patch.setattr("placevalue.common.files.file_hash", None)
        assert known_hash(path) == first
    write_whole(path, b"two")
    assert known_hash(path) == file_hash(path) != first


def test_damage_is_reported_by_file_and_line(tmp_path):
    path = write_whole(tmp_path / "a.json", '{"a": 1,\n "b": }\n')
    with pytest.raises(DataError, match=r"a\.json, line 2"):
        read_json(path)
    write_whole(path, b"\xff\xfe")
    with pytest.raises(DataError, match=r"a\.json: not text in UTF-8"):
        read_json(path)
    lines = write_whole(tmp_path / "a.jsonl", json.dumps({"a": 1}) + "\n\n" + '{"a": 2')
    with pytest.raises(DataError, match=r"a\.jsonl, line 3"):
        list(read_json_lines(lines))
    write_whole(lines, "[1]\n")
    with pytest.raises(DataError, match="line 1: expected a JSON object"):
        list(read_json_lines(lines))
