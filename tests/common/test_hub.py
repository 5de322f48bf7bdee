"""Finding and loading models, offline."""

import http.server
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModel,
    BertConfig,
    BertModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from placevalue.common import hub
from placevalue.common.errors import ModelError, PlacevalueError

UNREACHABLE = "http://127.0.0.1:9"


@pytest.fixture
def no_hub(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", UNREACHABLE)


def test_cache_folder_is_the_variable_or_the_home(cache, monkeypatch, tmp_path):
    assert hub.cache_folder() == cache
    monkeypatch.setenv("PLACEVALUE_CACHE", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert hub.cache_folder() == Path.home() / ".cache" / "placevalue"


def test_an_existing_folder_is_itself_even_under_a_known_name(tmp_path, cache, monkeypatch):
    assert hub.resolve_model(tmp_path) == str(tmp_path)
    (tmp_path / "minilm-l6").mkdir()
    monkeypatch.chdir(tmp_path)
    assert hub.resolve_model("minilm-l6") == "minilm-l6"


@pytest.mark.parametrize("name", ["gpt2", "google/flan-t5-base", "runs/first"])
def test_a_hub_name_stays_as_it_is(name, cache):
    assert hub.resolve_model(name) == name


def test_a_known_model_that_is_not_fetched_says_how_to(cache):
    with pytest.raises(ModelError, match="placevalue fetch minilm-l6"):
        hub.resolve_model("minilm-l6")


@pytest.mark.parametrize("name", ["", "./out", "/no/such/folder", "~/no/such", "a/b/c", "out/", "two words", "a\\b"])
def test_a_path_that_does_not_exist_is_refused(name, cache, tmp_path, monkeypatch):
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    with pytest.raises(ModelError, match="give a local folder"):
        hub.resolve_model(name)


def test_a_file_is_refused_as_such(tmp_path, cache):
    file = tmp_path / "model.safetensors"
    file.touch()
    with pytest.raises(ModelError, match="is a file"):
        hub.resolve_model(file)


@pytest.mark.parametrize("load", [hub.load_tokenizer, hub.load_model])
def test_without_a_hub_loading_fails_fast_and_says_so(load, cache, no_hub):
    start = time.monotonic()
    with pytest.raises(PlacevalueError, match=r"'nobody/no-such-model'.*no folder.*cannot be reached.*local folder"):
        load("nobody/no-such-model")
    assert time.monotonic() - start < 20  # the import of transformers included; the hub's client alone takes 23


def test_offline_mode_asks_nobody(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: pytest.fail("asked"))
    assert hub._hub_reachable() is False


def test_a_hanging_name_lookup_does_not_hang_us(monkeypatch, no_hub):
    done = threading.Event()
    monkeypatch.setattr(hub, "HUB_SECONDS", 0.1)

    def hang(*_, **__):
        done.wait(30)
        raise OSError("no such host")

    monkeypatch.setattr("urllib.request.urlopen", hang)
    start = time.monotonic()
    assert hub._hub_reachable() is False
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
        assert hub._hub_reachable() is True
        server.shutdown()


def test_an_empty_folder_is_named_with_what_was_expected(tmp_path):
    for load in (hub.load_tokenizer, hub.load_model):
        with pytest.raises(ModelError, match=r"folder.*config\.json"):
            load(tmp_path)


def test_a_broken_weight_file_is_a_model_error(tmp_path):
    config = BertConfig(vocab_size=8, hidden_size=4, num_hidden_layers=1, num_attention_heads=1, intermediate_size=4)
    config.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"not a tensor")
    with pytest.raises(ModelError, match="cannot load the folder"):
        hub.load_model(tmp_path)


def tiny_t5() -> T5ForConditionalGeneration:
    return T5ForConditionalGeneration(
        T5Config(vocab_size=16, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, decoder_start_token_id=0)
    )


def test_weights_that_are_not_there_are_never_drawn_at_random(tmp_path):
    sizes = dict(hidden_size=16, intermediate_size=16, num_attention_heads=2, num_hidden_layers=2, vocab_size=64)
    LlamaForCausalLM(LlamaConfig(**sizes)).save_pretrained(tmp_path)
    kept = load_file(tmp_path / "model.safetensors")
    gone = [name for name in kept if "layers.1" in name]
    save_file({name: kept[name] for name in kept.keys() - set(gone)}, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(
        ModelError, match=rf"no values for {len(gone)} weights of its LlamaForCausalLM, such as model.layers.1"
    ):
        hub.load_model(tmp_path)
    with pytest.raises(ModelError, match="restore its weights"):
        hub.load_model(tmp_path, dtype="bfloat16")
    assert hub.load_model(tmp_path, LlamaForCausalLM), "a class of the caller's choice may have weights of its own"
    save_file(kept, tmp_path / "model.safetensors", {"format": "pt"})
    assert hub.load_model(tmp_path)
    T5ForConditionalGeneration(
        T5Config(d_model=8, d_ff=8, d_kv=4, num_layers=1, num_heads=2, vocab_size=9)
    ).save_pretrained(tmp_path / "tied")
    assert hub.load_model(tmp_path / "tied")


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
        loaded = hub.load_model(folder)
        assert type(loaded) is type(model)
        assert loaded.config.tie_word_embeddings == model.config.tie_word_embeddings
    assert not hasattr(hub.load_model(tmp_path / "LlamaForCausalLM", auto_class=AutoModel), "lm_head")


def test_importing_imports_no_optional_package():
    code = "import sys, placevalue.common.fetch; sys.exit(bool({'onnx', 'gguf'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_accelerator_is_recorded_by_its_name(monkeypatch):
    monkeypatch.setattr("torch.cuda.get_device_name", lambda device: f"card {device}")
    assert hub.device_name("cuda:1") == "card cuda:1" and hub.device_name("cpu") == "cpu"
