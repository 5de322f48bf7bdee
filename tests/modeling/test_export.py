"""What torch.export, torch.jit.trace and ONNX Runtime make of an attached model: the same, at every length, or an error."""

import pytest
import torch

import placevalue as pv
from placevalue.common.errors import ConfigError
from zoo import build

EXAMPLE = ["the cat had 12 apples", "3 boys gave 4.56 of 1999 apples in room12b"]
OTHERS = (EXAMPLE, ["7", "12 cats", "0.5 then 123456 and -5 of 12 in 13 and 99"], ["7"], ["no numbers here"])
BATCH, LENGTH = torch.export.Dim("batch", max=64), torch.export.Dim("length", max=512)
SHAPES = ({0: BATCH, 1: LENGTH}, {0: BATCH, 1: LENGTH})


class Reader(torch.nn.Module):
    """What is exported: the encoder of a model that has one, else the model."""

    def __init__(self, model):
        super().__init__()
        self.model = model.get_encoder() if model.config.is_encoder_decoder else model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, return_dict=True, **self.options())[0]

    def options(self):
        return {} if not hasattr(self.model, "lm_head") else {"use_cache": False}


def prepared(name, aggregation="weighted", markers=True):
    model, base = build(name)
    tokenizer = pv.number_tokenizer(base, token="agg", markers=markers)
    pv.attach(model, tokenizer, aggregation=aggregation)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return Reader(model).eval(), tokenizer


def inputs(tokenizer, texts):
    return tuple(tokenizer(texts, padding=True, return_tensors="pt")[name] for name in ("input_ids", "attention_mask"))


def same(exported, reader, tokenizer, tolerance):
    """Whether an export gives what the model gives, on texts of other lengths and other numbers too."""
    lengths = set()
    for texts in OTHERS:
        given = inputs(tokenizer, texts)
        lengths.add(given[0].shape[1])
        with torch.no_grad():
            torch.testing.assert_close(exported(*given), reader(*given), rtol=0, atol=tolerance)
    return min(lengths) < 10 < max(lengths)  # ten digits fit into one row of the longer ones alone


@pytest.mark.parametrize("markers", [True, False])
def test_a_trace_is_right_at_every_length(markers):
    reader, tokenizer = prepared("t5", markers=markers)
    with torch.no_grad():
        traced = torch.jit.trace(reader, inputs(tokenizer, EXAMPLE))
    assert same(traced, reader, tokenizer, 1e-5)


def test_a_trace_at_a_length_without_room_for_a_number_has_them_too():
    reader, tokenizer = prepared("t5")
    with torch.no_grad():
        traced = torch.jit.trace(reader, (torch.tensor([[5, 6]]), torch.ones(1, 2, dtype=torch.long)))
    assert same(traced, reader, tokenizer, 1e-5)


def test_an_aggregation_that_an_export_would_fix_is_refused():
    first = pv.per_number(lambda values, places, embeddings: embeddings[values[0]])
    reader, tokenizer = prepared("t5", first)
    given = inputs(tokenizer, EXAMPLE)
    with torch.no_grad():
        reader(*given)
        with pytest.raises(ConfigError, match="repeat the numbers of its example"):
            torch.jit.trace(reader, given)
        with pytest.raises(Exception, match="repeat the numbers of its example"):
            torch.export.export(reader, given)


@pytest.mark.slow
@pytest.mark.parametrize("name, markers", [("t5", True), ("t5", False), ("llama", True)])
def test_torch_export_is_exact_at_every_length(name, markers):
    reader, tokenizer = prepared(name, markers=markers)
    with torch.no_grad():
        exported = torch.export.export(reader, inputs(tokenizer, EXAMPLE), dynamic_shapes=SHAPES)
    assert same(exported.module(), reader, tokenizer, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("aggregation", list(pv.AGGREGATIONS))
def test_onnx_runtime_reads_numbers_as_the_model_does(aggregation, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    reader, tokenizer = prepared("t5", aggregation)
    with torch.no_grad():
        program = torch.onnx.export(
            reader, inputs(tokenizer, EXAMPLE), dynamo=True, dynamic_shapes=SHAPES, verbose=False
        )
    program.save(tmp_path / "encoder.onnx")
    session = runtime.InferenceSession(tmp_path / "encoder.onnx")

    def run(input_ids, attention_mask):
        return torch.tensor(
            session.run(None, {"input_ids": input_ids.numpy(), "attention_mask": attention_mask.numpy()})[0]
        )

    assert same(run, reader, tokenizer, 1e-4)
