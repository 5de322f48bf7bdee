import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model

import placevalue as pv
from modeling.test_attach import TEXTS, assert_same, check_rows, encode, run
from modeling.test_checkpoints import trainer
from placevalue.common.errors import AttachError
from zoo import build

TARGETS = {name: ["q", "v"] for name in ("t5", "t5-untied", "t5-flan", "t5-padded")}
NAMES = ["t5", "t5-padded", "bart", "bart-scaled", "llama", "llama-tied", "gemma3"]


def lora(name, model, tokenizer, **options):
    targets = {"target_modules": TARGETS.get(name, ["q_proj", "v_proj"])}
    indices = {"trainable_token_indices": pv.trainable_tokens(model, tokenizer)}
    return LoraConfig(r=4, **(targets | indices | options))


def adapted(name, order, folder, **options):
    """A base saved to a folder, loaded from it, with LoRA on it; attached first or later."""
    model, base = build(name)
    model.save_pretrained(folder)
    model = type(model).from_pretrained(folder)
    tokenizer = pv.number_tokenizer(base, token="agg")
    if order == "attach first":
        pv.attach(model, tokenizer)
        return get_peft_model(model, lora(name, model, tokenizer, **options)), tokenizer
    if model.get_input_embeddings().weight.shape[0] < len(tokenizer):
        model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    return pv.attach(get_peft_model(model, lora(name, model, tokenizer, **options)), tokenizer), tokenizer


@pytest.mark.parametrize(
    ("name", "order"),
    [(name, order) for name in NAMES for order in ("attach first", "attach later")]
    + [("t5-untied", "attach first"), ("t5-flan", "attach first")],
)
def test_lora_with_trainable_markers_trains_saves_reloads_and_merges(name, order, tmp_path):
    model, tokenizer = adapted(name, order, tmp_path / "base")
    ids, mask = encode(tokenizer, TEXTS)
    check_rows(model.get_base_model(), tokenizer, ids, "weighted", 1e-6)
    before = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}
    assert any("trainable_tokens" in n for n in before) and all("lora" in n or "trainable_tokens" in n for n in before)
    trainer(model, tokenizer, tmp_path / "run", remove_unused_columns=False).train()
    moved = [n for n, p in model.named_parameters() if p.requires_grad and not torch.equal(p, before[n])]
    assert len(moved) == len(before)
    model.eval()
    wanted = run(model, ids, mask)
    check_rows(model.get_base_model(), tokenizer, ids, "weighted", 1e-6)

    pv.save_pretrained(model, tokenizer, tmp_path / "out")
    for folder in (tmp_path / "out", tmp_path / "run" / "checkpoint-4"):
        loaded, tokenizer2 = pv.from_pretrained(folder)
        assert isinstance(loaded, PeftModel) and pv.is_attached(loaded)
        assert torch.equal(encode(tokenizer2, TEXTS)[0], ids)
        assert_same(loaded.eval(), model, ids, mask)

    merged = model.merge_and_unload()
    torch.testing.assert_close(run(merged, ids, mask), wanted, rtol=1e-4, atol=1e-5)
    check_rows(merged, tokenizer, ids, "weighted", 1e-6)
    pv.save_pretrained(merged, tokenizer, tmp_path / "merged")
    again, _ = pv.from_pretrained(tmp_path / "merged")
    assert_same(again, merged, ids, mask)


@pytest.mark.parametrize("name", ["t5", "bart", "llama"])
def test_marker_rows_start_the_same_whichever_comes_first(name, tmp_path):
    first, tokenizer = adapted(name, "attach first", tmp_path / "a")
    later, _ = adapted(name, "attach later", tmp_path / "b")
    ids, mask = encode(tokenizer, TEXTS)
    torch.testing.assert_close(run(first, ids, mask), run(later, ids, mask), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["t5", "llama"])
def test_what_was_merged_comes_apart_again(name, tmp_path):
    model, tokenizer = adapted(name, "attach later", tmp_path / "base")
    ids, mask = encode(tokenizer, TEXTS)
    with model.disable_adapter():
        before = run(model, ids, mask)
    model.merge_adapter()
    model.unmerge_adapter()
    with model.disable_adapter():
        torch.testing.assert_close(run(model, ids, mask), before, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name, parts", [("t5", None), ("t5-untied", ["shared", "lm_head"]), ("t5-flan", ["shared", "lm_head"]),
                                         ("llama-tied", None), ("llama", ["embed_tokens", "lm_head"])])  # fmt: skip
def test_markers_are_named_in_each_matrix_whatever_the_config_says_of_tying(name, parts):
    model, base = build(name)
    tokenizer = pv.number_tokenizer(base, token="agg")
    pv.attach(model, tokenizer)
    markers = list(pv.marker_ids(tokenizer).values())
    assert pv.trainable_tokens(model, tokenizer) == (markers if parts is None else dict.fromkeys(parts, markers))
    assert model.config.tie_word_embeddings == (name != "llama")


@pytest.mark.parametrize("name", ["t5", "llama"])
def test_detach_from_inside_an_adapter(name, tmp_path):
    model, _ = adapted(name, "attach later", tmp_path / "base")
    pv.detach(model)  # nothing was grown by attach, so nothing has to shrink
    assert not pv.is_attached(model)
    model, _ = adapted(name, "attach first", tmp_path / "base")
    with pytest.raises(AttachError, match="unload"):
        pv.detach(model)
    assert pv.is_attached(model)
    pv.detach(model.unload())


@pytest.mark.parametrize("options", [{"modules_to_save": ["shared"]}, {"target_modules": ["q", "q_proj", "shared"]}])
@pytest.mark.parametrize("name", ["t5", "bart"])
def test_adapters_that_would_train_nothing_are_refused(name, options, tmp_path):
    options = options | {"trainable_token_indices": None}
    with pytest.raises(AttachError, match=r"never reads.*trainable_token_indices"):
        adapted(name, "attach later", tmp_path / "base", **options)
    model, tokenizer = adapted(name, "attach first", tmp_path / "base", **options)
    for _ in range(2):  # whoever tries again is refused again
        with pytest.raises(AttachError, match=r"never reads.*trainable_token_indices"):
            run(model.train(), *encode(tokenizer, TEXTS))
    with pytest.raises(AttachError, match=r"never reads.*trainable_token_indices"):
        pv.save_pretrained(model, tokenizer, tmp_path / "out")


def test_markers_tied_into_an_output_of_its_own_are_refused(tmp_path):
    with pytest.raises(AttachError, match="separate output matrix.*before get_peft_model"):
        adapted("t5-flan", "attach later", tmp_path / "base")
    model, tokenizer = adapted("t5-flan", "attach later", tmp_path / "plain", trainable_token_indices=None)
    check_rows(model.get_base_model(), tokenizer, encode(tokenizer, TEXTS)[0], "weighted", 1e-6)


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_two_copies_of_the_markers_rows_are_refused(name, tmp_path):
    model, tokenizer = adapted(name, "attach first", tmp_path / "base", trainable_token_indices=None)
    model = model.unload()
    indices = {"embed_tokens": list(pv.marker_ids(tokenizer).values())}
    model = get_peft_model(model, lora(name, model, tokenizer, trainable_token_indices=indices))
    with pytest.raises(AttachError, match="several copies of the same rows"):
        run(model.train(), *encode(tokenizer, TEXTS))


def test_growing_under_an_adapter_is_refused(tmp_path):
    model, base = build("llama")
    tokenizer = pv.number_tokenizer(base, token="agg")
    model = get_peft_model(model, LoraConfig(target_modules=["q_proj"], trainable_token_indices=[5]))
    with pytest.raises(AttachError, match="before get_peft_model"):
        pv.attach(model, tokenizer)
