"""Models whose numbers have no markers: what changes, what does not, and that all of it is saved."""

import copy
import json

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, Seq2SeqTrainer, Trainer

import oracle
import placevalue as pv
from families import FAMILIES, base_tokenizer
from loss.test_trainers import arguments
from placevalue.common.errors import AttachError, TokenizerError
from placevalue.modeling.attached_config import recorded_config
from placevalue.modeling.hooks import TargetCheck
from placevalue.numbers.spans import find_digits
from placevalue.tokenizer.collate import PairCollator
from placevalue.tokenizer.tokenizer import check_unchanged, number_ids
from zoo import build

QUESTIONS = ["Ann has 12 apples and -3.5 of 1,250.", "5 and 7?", "no number", "x-3 and .5"]
ANSWERS = ["42", "-1,000.5", "none", "7. 8"]
SPLITS = ["bytes-smollm2", "bytes-qwen2"]


def prepared(name, **options):
    model, base = build(name)
    tokenizer = pv.number_tokenizer(base, markers=False, **options)
    pv.attach(model, tokenizer)
    return model.eval(), tokenizer


@pytest.mark.parametrize("family", SPLITS)
def test_where_digits_are_split_already_every_id_is_the_bases(family, tmp_path):
    base = base_tokenizer(family)
    tokenizer = pv.number_tokenizer(base, markers=False)
    texts = [*QUESTIONS, *ANSWERS, "½ \ufdd3 [F] 3</s>", " -3", "$1,250.50 -.5 1e-5", ""]
    assert tokenizer.backend_tokenizer.to_str() == base.backend_tokenizer.to_str() and len(tokenizer) == len(base)
    assert tokenizer(texts)["input_ids"] == base(texts)["input_ids"] and pv.marker_ids(tokenizer) == {}
    ours, plain = (
        pv.encode_pairs(each, QUESTIONS, ANSWERS, encoder_decoder=False, plain=each is base)
        for each in (tokenizer, base)
    )
    assert ours == plain
    tokenizer.save_pretrained(tmp_path)
    for loaded in (pv.load_number_tokenizer(tmp_path), AutoTokenizer.from_pretrained(tmp_path)):
        check_unchanged(loaded)
        assert number_ids(loaded) == number_ids(tokenizer)
        assert number_ids(loaded).spelling == number_ids(tokenizer).spelling


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in (*SPLITS, "wordpiece-bert")])
def test_elsewhere_digits_are_split_and_no_token_is_added(family):
    base = base_tokenizer(family)
    tokenizer = pv.number_tokenizer(base, markers=False)
    assert len(tokenizer) == len(base)
    for text in ("no number", "naïve ½ café", *QUESTIONS):
        ids, plain = tokenizer(text)["input_ids"], base(text)["input_ids"]
        digits = [i for i in ids if i in number_ids(tokenizer).digits]
        assert [number_ids(tokenizer).digits.index(i) for i in digits if "½" not in text] == [
            int(c) for c in text if c in "0123456789"
        ]
        assert tokenizer.decode(ids) == base.decode(plain)
        if not any(c in "0123456789" for c in text):
            assert ids == plain


def test_a_base_without_spaces_in_its_ids_is_refused():
    for options in ({}, {"token": "agg"}):
        with pytest.raises(TokenizerError, match="'1 2' becomes.*Leave the markers in"):
            pv.number_tokenizer(base_tokenizer("wordpiece-bert"), markers=False, **options)


@pytest.mark.parametrize("name", ["t5-flan", "bart", "llama", "qwen2"])
def test_attaching_adds_no_row_and_no_hook_that_computes(name):
    model, base = build(name)
    before, rows = copy.deepcopy(model).eval(), model.get_input_embeddings().weight.shape[0]
    tokenizer = pv.number_tokenizer(base, markers=False)
    pv.attach(model.eval(), tokenizer)
    assert model.get_input_embeddings().weight.shape[0] == rows
    assert all(
        torch.equal(a, b) for a, b in zip(model.state_dict().values(), before.state_dict().values(), strict=True)
    )
    batch = PairCollator(tokenizer, model)(pv.encode_pairs(tokenizer, QUESTIONS, ANSWERS))
    assert torch.equal(model(**batch).logits, before(**batch).logits)
    assert pv.trainable_tokens(model, tokenizer) is None
    assert "12 as 1 2" in repr(model) and "12 as 1 2" in repr(tokenizer)
    pv.detach(model)
    assert not hasattr(model.config, "placevalue")


@pytest.mark.parametrize("position", ["before", "after"])
@pytest.mark.parametrize("name", ["t5-flan", "bart-scaled", "llama", "gemma3"])
def test_every_agg_is_its_numbers_aggregate(name, position):
    model, tokenizer = prepared(name, token="agg", position=position)
    reader = model.get_encoder() if model.config.is_encoder_decoder else model
    rows = reader.get_input_embeddings().forward(torch.tensor(number_ids(tokenizer).digits))
    for text, numerals in (("Ann has 12 apples and -3.5 of 1,250.", ["12", "-3.5", "1,250"]), ("5", ["5"])):
        ids = torch.tensor([tokenizer(text, add_special_tokens=False)["input_ids"]])
        embedded = reader.get_input_embeddings()(ids)[0]
        here = (ids[0] == number_ids(tokenizer).agg).nonzero().flatten()
        assert len(here) == len(numerals)
        for at, numeral in zip(here, numerals, strict=True):
            wanted = oracle.signed_aggregate("weighted", numeral, rows).float()
            torch.testing.assert_close(embedded[at], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("token", [None, "agg"])
@pytest.mark.parametrize("name", ["t5-flan", "llama"])
def test_left_padding_and_beams_agree(name, token, beams):
    model, tokenizer = prepared(name, token=token)
    tokenizer.padding_side = "left"
    encoded = pv.encode_questions(tokenizer, QUESTIONS)
    together = tokenizer.pad(encoded, return_tensors="pt")
    settings = {"max_new_tokens": 6, "num_beams": beams, "do_sample": False, "min_new_tokens": 6}
    answers = model.generate(**together, **settings)[:, -6:]
    for one, answer in zip(encoded, answers, strict=True):
        alone = model.generate(**{key: torch.tensor([value]) for key, value in one.items()}, **settings)[0, -6:]
        assert alone.tolist() == answer.tolist()


@pytest.mark.parametrize("loss", [None, "soft", "ntl-was", "magnitude-probe"])
@pytest.mark.parametrize("name, token", [("t5-flan", None), ("t5-flan", "agg"), ("qwen2", None), ("llama", "agg")])
def test_three_steps_saved_loaded_and_answering(name, token, loss, tmp_path):
    model, tokenizer = prepared(name, token=token)
    made = {
        None: lambda: None,
        "soft": lambda: pv.AggregationLoss(model, tokenizer),
    }.get(loss, lambda: pv.NumberLoss(model, tokenizer, loss))()
    data, kind = pv.encode_pairs(tokenizer, QUESTIONS, ANSWERS), Seq2SeqTrainer if name == "t5-flan" else Trainer
    trainer = kind(model, arguments(tmp_path / "run", max_steps=3) if kind is Trainer else seq2seq(tmp_path / "run"),
                   train_dataset=data, data_collator=PairCollator(tokenizer, model), compute_loss_func=made,
                   processing_class=tokenizer)  # fmt: skip
    trainer.train()
    assert trainer.state.global_step == 3
    pv.save_pretrained(model.eval(), tokenizer, tmp_path / "out")
    loaded, again = pv.from_pretrained(tmp_path / "out")
    questions = tokenizer.pad(pv.encode_questions(again, QUESTIONS[:1]), return_tensors="pt")
    wanted = model.generate(**questions, max_new_tokens=5, do_sample=False)
    assert loaded.eval().generate(**questions, max_new_tokens=5, do_sample=False).tolist() == wanted.tolist()
    card = (tmp_path / "out" / "README.md").read_text()
    assert "12 is written `[AGG] 1 2`" in card if token else "12 is written `1 2`" in card


def seq2seq(folder):
    from transformers import Seq2SeqTrainingArguments

    return Seq2SeqTrainingArguments(str(folder), max_steps=3, report_to=[], use_cpu=True, save_strategy="no")


def test_without_an_extra_token_a_folder_is_an_ordinary_one(tmp_path):
    model, tokenizer = prepared("llama")
    pv.save_pretrained(model, tokenizer, tmp_path / "plain")
    opened = AutoModelForCausalLM.from_pretrained(tmp_path / "plain")
    assert torch.equal(opened.get_input_embeddings().weight, model.get_input_embeddings().weight)
    assert "spelling" not in json.loads((tmp_path / "plain" / "config.json").read_text())["placevalue"]["ids"]
    model, tokenizer = prepared("llama", token="agg")
    pv.save_pretrained(model, tokenizer, tmp_path / "agg")
    with pytest.raises(Exception, match="placevalue"):
        AutoModelForCausalLM.from_pretrained(tmp_path / "agg")


@pytest.mark.parametrize("order", ["attach first", "attach later"])
@pytest.mark.parametrize("token", [None, "agg"])
def test_lora_before_and_after(token, order, tmp_path):
    model, base = build("llama-tied")
    model.save_pretrained(tmp_path / "base")
    model = type(model).from_pretrained(tmp_path / "base")
    tokenizer = pv.number_tokenizer(base, markers=False, token=token)

    def adapt(inner):
        indices = {"trainable_token_indices": pv.trainable_tokens(inner, tokenizer)}
        return get_peft_model(inner, LoraConfig(r=2, target_modules=["q_proj"], **indices))

    if order == "attach first":
        pv.attach(model, tokenizer)
        model = adapt(model)
    else:
        if token:
            model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
        model = pv.attach(adapt(model), tokenizer)
    data = pv.encode_pairs(tokenizer, QUESTIONS, ANSWERS)
    loss = pv.AggregationLoss(model, tokenizer)
    Trainer(model, arguments(tmp_path / "run", max_steps=3), train_dataset=data, compute_loss_func=loss,
            data_collator=PairCollator(tokenizer, model)).train()  # fmt: skip
    pv.save_pretrained(model.eval(), tokenizer, tmp_path / "out")
    loaded, _ = pv.from_pretrained(tmp_path / "out")
    assert isinstance(loaded, PeftModel) and pv.is_attached(loaded)
    ids = torch.tensor([data[0]["input_ids"]])
    torch.testing.assert_close(loaded.eval()(input_ids=ids).logits, model(input_ids=ids).logits)


@pytest.mark.parametrize("pattern", ["paper", "extended", "european"])
@pytest.mark.parametrize("token", [None, "agg"])
def test_cutting_never_cuts_a_number_in_two(token, pattern):
    tokenizer = pv.number_tokenizer(base_tokenizer("bytes-gpt2"), markers=False, token=token, pattern=pattern)
    for text in ("the cat 12345 and 6", "1,000,000.25 cats", "7", "1e5x and 3", "-3.5 -4", "5. 66", "1.2.3"):
        whole = numbers_in(tokenizer, tokenizer(text)["input_ids"])
        assert len(whole) == len(pv.find_numerals(text, pattern))
        kept = set()
        for limit in range(1, len(tokenizer(text)["input_ids"]) + 1):
            (cut,) = pv.encode_questions(tokenizer, [text], encoder_decoder=True, max_question=limit)
            found = numbers_in(tokenizer, cut["input_ids"])
            assert len(cut["input_ids"]) <= limit and found == whole[: len(found)], (text, limit)
            kept.add(len(found))
        assert max(kept) == len(whole) and (len(kept) > 1 or text == "7")


def numbers_in(tokenizer, ids):
    """The digits and places of each number."""
    digits = find_digits(torch.tensor([ids], dtype=torch.long), number_ids(tokenizer))
    found = {}
    for at in digits.mask[0].nonzero().flatten().tolist():
        digit = int(digits.values[0, at]), int(digits.places[0, at])
        found.setdefault(int(digits.numbers[0, at]), []).append(digit)
    return list(found.values())


def test_an_agg_in_what_is_learnt_is_refused():
    model, tokenizer = prepared("llama", token="agg")
    ids = torch.tensor([tokenizer("the 12 cats")["input_ids"]])
    with pytest.raises(AttachError, match=r"contains \[AGG\] or \[PAUSE\]"):
        model(input_ids=ids, labels=ids)
    labels = torch.where(ids == number_ids(tokenizer).agg, -100, ids)
    with pytest.raises(AttachError, match=r"contains \[AGG\] or \[PAUSE\]"):
        model(input_ids=ids, labels=labels)  # it comes before the digits and gives them away
    clean = pv.clean_targets(tokenizer, {"input_ids": ids[0].tolist(), "labels": labels[0].tolist()})
    assert clean["input_ids"] == [i for i in ids[0].tolist() if i != number_ids(tokenizer).agg]
    assert clean["labels"] == clean["input_ids"]
    asked = pv.clean_targets(tokenizer, {"input_ids": ids[0].tolist(), "labels": [-100] * ids.shape[1]})
    assert asked["input_ids"] == ids[0].tolist()
    ordinary, _ = prepared("llama")
    assert TargetCheck(recorded_config(ordinary)).left == 0  # without new tokens there is nothing to check


def test_inspect_shows_numbers_and_their_pieces():
    tokenizer = pv.number_tokenizer(base_tokenizer("bytes-gpt2"), markers=False, token="agg")
    shown = pv.inspect("room 12, -3.5", tokenizer)
    assert shown.ours[-5:] == ["[AGG]", "-", "3", ".", "5"] and [str(n.value) for n, _ in shown.numbers] == [
        "12",
        "-3.5",
    ]
    assert {shown.ours[at] for at in shown.inside} == {"[AGG]", "1", "2", "-", "3", ".", "5"}
    assert "background:rgba(40,160,80,.25)" in shown._repr_html_()


def test_the_former_name_of_new_rows():
    rows = []
    for options in ({"markers": "mean"}, {"new_rows": "mean"}):
        torch.manual_seed(0)
        model, base = build("llama")
        if "markers" in options:
            with pytest.warns(DeprecationWarning, match="new_rows="):
                pv.attach(model, pv.number_tokenizer(base), **options)
        else:
            pv.attach(model, pv.number_tokenizer(base), **options)
        rows.append(model.get_input_embeddings().weight)
    assert torch.equal(*rows)
