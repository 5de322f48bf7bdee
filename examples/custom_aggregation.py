"""Write your own aggregation: measure it on a model's digits, train with it, save it and load it.

python examples/custom_aggregation.py --model google/flan-t5-base

`rounded` places a number between its first digit and the next: 1999 is nearly at 2.
"""

import argparse

import torch
from transformers import AutoModelForSeq2SeqLM, DataCollatorForSeq2Seq

import placevalue as pv

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--model", default="google/flan-t5-base", help="a folder, a hub name or a fetched name")
parser.add_argument("--out", default="my-model", help="the folder to save the model in")
options = parser.parse_args()


def rounded(values: torch.Tensor, places: torch.Tensor, embeddings: torch.Tensor) -> torch.Tensor:
    """One number's vector, from its digits `(n,)`, their places `(n,)` and the digit embeddings `(10, dim)`."""
    worth = (values * 10.0 ** (places - places[0])).sum()  # 1.999 for 1999
    lower = worth.floor().long().clamp(max=9)
    way = (worth - lower).to(embeddings.dtype)
    return (1 - way) * embeddings[lower] + way * embeddings[(lower + 1) % 10]


pv.AGGREGATIONS["rounded"] = pv.per_number(rounded)  # use it by this name, also in checkpoints

tokenizer = pv.number_tokenizer(options.model, token="agg")
model = AutoModelForSeq2SeqLM.from_pretrained(pv.resolve_model(options.model))
pv.attach(model, tokenizer, aggregation="rounded")
digits = model.get_input_embeddings()(torch.tensor(tokenizer.convert_tokens_to_ids(list("0123456789")))).detach()
print("F1 by length:", {n: round(f1, 2) for n, f1 in pv.neighbourhood_f1(digits, "rounded", range(1, 4)).items()})

batch = DataCollatorForSeq2Seq(tokenizer, model=model)(pv.encode_pairs(tokenizer, ["12 and 30?"], ["42"]))
loss = pv.AggregationLoss(model, tokenizer)  # compares `rounded` too, since the model is attached with it
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(3):
    loss(model(**batch), batch["labels"]).backward()
    optimizer.step()
    optimizer.zero_grad()
    print({name: round(float(value), 3) for name, value in loss.parts.items()})

pv.save_pretrained(model, tokenizer, options.out)
model, tokenizer = pv.from_pretrained(options.out)  # another program must add `rounded` to AGGREGATIONS first
