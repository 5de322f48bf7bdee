import pytest

from placevalue.common.errors import DataError
from placevalue.common.ownership import check_folder, read_mark, replace_own, set_aside
from placevalue.common.records import SweepRecord, TrainRecord, is_record


class TestFolders:
    def test_new_empty_and_own_folders_are_taken(self, tmp_path):
        check_folder(tmp_path / "new", ours=False)
        check_folder(tmp_path, ours=False)
        (tmp_path / "train.log").touch()
        (tmp_path / ".hidden").touch()
        check_folder(tmp_path, ours=False, but=["train.log"])
        check_folder(tmp_path, ours=True)

    def test_others_are_refused_by_what_they_hold(self, tmp_path):
        for name in "dcbae":
            (tmp_path / name).touch()
        with pytest.raises(DataError, match=r"holds a, b, c and 2 more, and nothing in it says .*: choose a new or"):
            check_folder(tmp_path, ours=False)
        with pytest.raises(DataError, match="a is a file, expected a folder"):
            check_folder(tmp_path / "a", ours=True)


def test_a_mark_is_a_json_object(tmp_path):
    path = tmp_path / "train.json"
    for content, found in (
        ("[]", {}),
        ("{", {}),
        ('{"schema": "placevalue/train/9"}', {"schema": "placevalue/train/9"}),
    ):
        path.write_text(content)
        assert read_mark(path) == found
    assert is_record(path, TrainRecord) and not is_record(path, SweepRecord)
    assert read_mark(tmp_path / "none") == read_mark(tmp_path) == {}


def test_only_a_file_with_the_mark_is_replaced(tmp_path):
    path = tmp_path / "page.md"
    assert replace_own(path, "by us: 1", "by us").read_text() == "by us: 1"
    assert replace_own(path, "by us: 2", "by us").read_text() == "by us: 2"
    path.write_text("by me")
    with pytest.raises(DataError, match="page.md exists and is not a file that placevalue wrote"):
        replace_own(path, "by us: 3", "by us")
    assert path.read_text() == "by me"


def test_what_is_set_aside_takes_nobodys_name(tmp_path, caplog):
    for number in (1, 2):
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / str(number)).touch()
        assert set_aside(tmp_path / "a", "is damaged").name == f"set-aside-a-{number}"
        assert f"a is damaged: it is now {tmp_path / f'set-aside-a-{number}'}" in caplog.text
    assert (tmp_path / "set-aside-a-1" / "1").exists() and not (tmp_path / "a").exists()
