"""Rewrites around a tokenizer: encoded, learnt, saved, loaded and answered in plain numbers."""

import json

import pytest
import torch
from transformers import DataCollatorForSeq2Seq

import placevalue as pv
from families import base_tokenizer
from placevalue.common.errors import AttachError, ConfigError, TokenizerError
from placevalue.common.records import PredictionRecord, read_record
from placevalue.experiments.recipe import make_recipe
from placevalue.experiments.train import train
from zoo import build

QUESTIONS, ANSWERS = ["Ann has 1250 apples and 3.5", "how many?"], ["1253.5", "the 7 cats"]
WIDE = ["bytes-gpt2", "bytes-qwen2"]  # families whose small vocabulary has every letter


def texts(tokenizer, examples, key):
    ids = [[i for i in each[key] if i != -100] for each in examples]
    return tokenizer.batch_decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)


@pytest.mark.parametrize("name", pv.REWRITES)
@pytest.mark.parametrize("family", WIDE)
def test_what_is_encoded_is_rewritten_and_decoded_plain(family, name):
    plain, tokenizer = (
        pv.number_tokenizer(base_tokenizer(family)),
        pv.number_tokenizer(base_tokenizer(family), rewrite=name),
    )
    examples = pv.encode_pairs(tokenizer, QUESTIONS, ANSWERS, encoder_decoder=True)
    written = texts(tokenizer, examples, "labels")
    assert [text.strip() for text in written] != ANSWERS or name == "commas"
    assert pv.decode(tokenizer, [each["labels"] for each in examples]) == ANSWERS
    assert pv.decode(tokenizer, torch.tensor(examples[0]["labels"])) == ANSWERS[0]
    asked = pv.encode_questions(tokenizer, QUESTIONS, encoder_decoder=True)
    assert [each["input_ids"] for each in examples] == [each["input_ids"] for each in asked]
    same = asked == pv.encode_questions(plain, QUESTIONS, encoder_decoder=True)
    assert same == (pv.REWRITES[name].where == "answer")
    assert asked[1] == pv.encode_questions(plain, QUESTIONS, encoder_decoder=True)[1]  # it has no number


def test_families_carry_what_their_vocabulary_can_write(family):
    for name in ("reversed", "commas", "10e"):
        tokenizer = pv.number_tokenizer(base_tokenizer(family), rewrite=name)
        labels = pv.encode_pairs(tokenizer, ["-"], ["1250.75"], encoder_decoder=True)[0]["labels"]
        assert pv.decode(tokenizer, labels) == "1250.75"


def test_a_vocabulary_that_cannot_carry_a_rewrite_is_refused():
    with pytest.raises(TokenizerError, match=r"Unigram tokenizer cannot carry rewrite='numerologic': .*read back as"):
        pv.number_tokenizer(base_tokenizer("unigram-t5"), rewrite="numerologic")


def test_plain_texts_are_rewritten_whole_or_refused():
    tokenizer = pv.number_tokenizer(base_tokenizer("bytes-gpt2"), rewrite="reversed-both")
    (example,) = pv.encode_texts(tokenizer, ["the cat had 120 apples"])
    assert texts(tokenizer, [example], "labels") == ["the cat had 021 apples"]
    with pytest.raises(TokenizerError, match="rewrite=.reversed. is for questions with answers"):
        pv.encode_texts(pv.number_tokenizer(base_tokenizer("bytes-gpt2"), rewrite="reversed"), ["12"])


def test_a_tokenizer_without_rewrite_decodes_too():
    base = base_tokenizer("bytes-gpt2")
    for tokenizer in (base, pv.number_tokenizer(base)):
        assert pv.decode(tokenizer, tokenizer(" the cat had 12 apples ")["input_ids"]) == "the cat had 12 apples"
    assert pv.decode(base, []) == ""


def test_other_tools_and_losses_that_need_places_are_refused(tmp_path):
    model, base = build("llama")
    tokenizer = pv.number_tokenizer(base, rewrite="words")
    pv.attach(model, tokenizer)
    with pytest.raises(ConfigError, match="rewrite='words', which only encode_pairs"):
        pv.NumberCollator(tokenizer, model)
    with pytest.raises(ConfigError, match="rewrite='words', which only encode_pairs"):
        pv.clean_targets(tokenizer, {"input_ids": tokenizer("12")["input_ids"]})
    with pytest.raises(ConfigError, match="the digits of an answer do not have their places"):
        pv.AggregationLoss(model, tokenizer)
    pv.save_pretrained(model, tokenizer, tmp_path)
    with pytest.raises(ValueError, match="placevalue.from_pretrained"):
        type(model).from_pretrained(tmp_path)
    assert "rewritten as `words`" in (tmp_path / "README.md").read_text()
    with pytest.raises(AttachError, match="is attached for"):
        pv.attach(pv.detach(model), pv.number_tokenizer(base)) and pv.check_attached(model, tokenizer)


def test_commas_keep_the_aggregate_and_the_loss_right():
    model, base = build("llama")
    tokenizer = pv.number_tokenizer(base, token="agg", rewrite="commas")
    pv.attach(model, tokenizer)
    loss = pv.AggregationLoss(model, tokenizer)
    batch = DataCollatorForSeq2Seq(tokenizer, model)(pv.encode_pairs(tokenizer, ["1250?"], ["1251"]))
    loss(model(**batch), batch["labels"]).backward()
    assert int(loss.parts["numbers"]) == 1
    written, ids = tokenizer("1,250")["input_ids"], batch["input_ids"][0].tolist()
    assert any(ids[at : at + len(written) - 1] == written[:-1] for at in range(len(ids)))


@pytest.mark.parametrize("name", pv.REWRITES)
@pytest.mark.parametrize("kind", ["llama"])
def test_three_steps_saved_and_loaded_answer_in_plain_numbers(tmp_path, kind, name):
    """A model that is made to repeat what it learnt writes rewritten numbers, and users read plain ones."""
    model, base = build(kind)
    tokenizer = pv.number_tokenizer(base, rewrite=name)
    pv.attach(model, tokenizer)
    data = pv.encode_pairs(tokenizer, ["12?", "7 and 5?"], ["1234.5", "1234.5"])
    batch = DataCollatorForSeq2Seq(tokenizer, model)(data)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    pv.save_pretrained(model, tokenizer, tmp_path)
    loaded, saved = pv.from_pretrained(tmp_path)
    labels = [i for i in data[0]["labels"] if i != -100]
    assert pv.encode_pairs(saved, ["12?"], ["1234.5"])[0] == data[0] and pv.decode(saved, labels) == "1234.5"
    prompt = torch.tensor([pv.encode_questions(saved, ["12?"])[0]["input_ids"]])
    assert torch.equal(loaded(input_ids=prompt).logits, model.eval()(input_ids=prompt).logits)
    assert isinstance(pv.decode(saved, loaded.generate(prompt, max_new_tokens=4)[:, prompt.shape[1] :]), list)


def sums(folder, name, **training):
    (folder / "sums.csv").write_text("question,answer\n" + "".join(f"{i} and 1?,{i + 1}\n" for i in range(8, 20)))
    model, base = build("llama")
    model.save_pretrained(folder / "llama")
    base.save_pretrained(folder / "llama")
    settings = {"max_steps": 3, "batch_size": 12, "warmup_steps": 0, "max_answer": 14} | training
    data = {"train": str(folder / "sums.csv")}
    return make_recipe({"model": str(folder / "llama"), "data": data, "methods": [name], "training": settings}).run()


def test_predictions_are_plain_and_what_cannot_be_read_is_counted(tmp_path, monkeypatch):
    config = sums(tmp_path, "numerologic")
    train(config, tmp_path / "run", progress=lambda *_: None)
    answers = iter(["[1:9]", "[2:10]", "[2:11", "12"] + ["[2:13]"] * 8)
    monkeypatch.setattr(
        "placevalue.experiments.generator.Answerer.answer", lambda _, questions: [next(answers) for _ in questions]
    )
    name = str(tmp_path / "sums.csv")
    record = pv.predict(tmp_path / "run", [name], tmp_path / "answers", batch_size=1)
    assert record.counts["unreadable_answers"] == record.counts[f"unreadable_answers:{name}"] == 1
    assert record == read_record(tmp_path / "answers" / "prediction.json", PredictionRecord)
    rows = [json.loads(line) for line in (tmp_path / "answers" / "predictions.jsonl").read_text().splitlines()]
    found = {row["prediction"]: row["readable"] for row in rows}
    assert found == {"9": True, "10": True, "[2:11": False, "12": True, "13": True}
    score = pv.evaluate(tmp_path / "answers", draws=10).scores[name]
    right = sum(row["prediction"] == row["answer"] and row["readable"] for row in rows)
    assert score["unreadable"]["value"] == 1 / 12 and score["accuracy_exact"]["value"] == right / 12
    assert score["no_number"]["value"] == 1 / 12


def test_reachable_counts_rewritten_answers(tmp_path):
    train(sums(tmp_path, "10e"), tmp_path / "run", progress=lambda *_: None)
    name, long = str(tmp_path / "sums.csv"), {}
    for room in (14, 40):
        record = pv.predict(tmp_path / "run", [name], tmp_path / str(room), beams=1, max_answer=room)
        long[room] = record.counts["unreachable_answers"]
    assert long == {14: 11, 40: 0}  # `1 10e1 2 10e0` does not fit, `9 10e0` does


def test_a_prediction_that_cannot_be_read_is_wrong_whatever_it_looks_like():
    from placevalue.evaluation.metrics import METRICS, read_answer

    unread = read_answer("42", "[2:42", readable=False)
    assert METRICS["accuracy_paper"].function(unread) == 0 and METRICS["unreadable"].function(unread) == 1
    assert METRICS["cer_written"].function(unread) == 1 and METRICS["no_number"].function(unread) == 1
    assert METRICS["unreadable"].function(read_answer("42", "42")) is None


@pytest.mark.parametrize("family, two_part", [("unigram-t5", True), ("bytes-gpt2", False)])
def test_pauses_follow_questions(family, two_part):
    base = base_tokenizer(family)
    plain, tokenizer = pv.number_tokenizer(base), pv.number_tokenizer(base, pauses=3)
    before, after = (
        pv.encode_pairs(each, QUESTIONS, ANSWERS, encoder_decoder=two_part)[0] for each in (plain, tokenizer)
    )
    answer = [label for label in before["labels"] if label != -100]
    end = [base.eos_token_id] if two_part else answer
    asked = before["input_ids"][: -len(end)]
    assert after["input_ids"] == [*asked, *[pv.marker_ids(tokenizer)["pause"]] * 3, *end]
    assert after["labels"] == (answer if two_part else [-100] * (len(asked) + 3) + answer)


def test_pauses_are_for_questions_alone():
    model, base = build("llama")
    tokenizer = pv.number_tokenizer(base, pauses=3)
    pv.attach(model, tokenizer)
    batch = DataCollatorForSeq2Seq(tokenizer, model)(pv.encode_pairs(tokenizer, QUESTIONS, ANSWERS))
    loss = pv.AggregationLoss(model, tokenizer)
    loss(model.train()(**batch), batch["labels"]).backward()
    with pytest.raises(TokenizerError, match="pauses=3 is for questions with answers"):
        pv.encode_texts(tokenizer, ["12"])
    with pytest.raises(ConfigError, match="pauses=3, which only encode_pairs"):
        pv.NumberCollator(tokenizer, model)
    with pytest.raises(ConfigError, match="pauses=-1: expected 0 or more"):
        pv.NumberConfig(pauses=-1)
