"""Train a decoder-only model with LoRA, [AGG] and trainable markers; the adapter takes a few megabytes.

python examples/lora_decoder.py --model HuggingFaceTB/SmolLM2-135M --out my-adapter

Trains on MAWPS, which comes with placevalue.
"""

import argparse

from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, DataCollatorForSeq2Seq, Trainer, TrainingArguments

import placevalue as pv
from placevalue.data import load_data

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--model", default="HuggingFaceTB/SmolLM2-135M", help="a folder, a hub name or a fetched name")
parser.add_argument("--out", default="my-adapter", help="the folder to save the adapter in")
parser.add_argument("--steps", type=int, default=500)
options = parser.parse_args()

problems = load_data("mawps:train")
tokenizer = pv.number_tokenizer(options.model, token="agg")
tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
model = AutoModelForCausalLM.from_pretrained(pv.resolve_model(options.model))
pv.attach(model, tokenizer, aggregation="interpolated")
lora = LoraConfig(r=16, target_modules="all-linear", trainable_token_indices=pv.trainable_tokens(model, tokenizer))
model = get_peft_model(model, lora)
# This model reads question and answer as one text; the loss is on the answers only.
data = pv.encode_pairs(tokenizer, [each.question for each in problems], [each.answer for each in problems])

trainer = Trainer(
    model,
    TrainingArguments(
        output_dir=f"{options.out}/checkpoints",
        max_steps=options.steps,
        per_device_train_batch_size=16,
        learning_rate=3e-4,
        logging_steps=10,
        report_to=[],
    ),
    train_dataset=data,
    data_collator=DataCollatorForSeq2Seq(tokenizer),
    compute_loss_func=pv.AggregationLoss(model, tokenizer),
)
trainer.train()
pv.save_pretrained(model, tokenizer, options.out)
model, tokenizer = pv.from_pretrained(options.out)
print(f"{options.out} loads again as {type(model).__name__}")
