"""Fine-tune T5 on your own CSV file, with [AGG] and the auxiliary loss.

python examples/csv_with_t5.py problems.csv --model google/flan-t5-base --out my-model

The file needs the columns `question` and `answer`.
"""

import argparse

from transformers import AutoModelForSeq2SeqLM, DataCollatorForSeq2Seq, Seq2SeqTrainer, Seq2SeqTrainingArguments

import placevalue as pv
from placevalue.data import read_problems

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("file", help="a .csv or .jsonl file")
parser.add_argument("--model", default="google/flan-t5-base", help="a folder, a hub name or a fetched name")
parser.add_argument("--out", default="my-model", help="the folder to save the model in")
parser.add_argument("--epochs", type=float, default=10)
options = parser.parse_args()

problems = read_problems(options.file)
config = pv.NumberConfig(token="agg", aggregation="weighted")
tokenizer = pv.number_tokenizer(options.model, config)
model = AutoModelForSeq2SeqLM.from_pretrained(pv.resolve_model(options.model))
pv.attach(model, tokenizer)
data = pv.encode_pairs(tokenizer, [each.question for each in problems], [each.answer for each in problems])

loss = pv.AggregationLoss(model, tokenizer, ce_weight=0.6)
trainer = Seq2SeqTrainer(
    model,
    Seq2SeqTrainingArguments(
        output_dir=f"{options.out}/checkpoints",
        num_train_epochs=options.epochs,
        per_device_train_batch_size=16,
        learning_rate=1e-4,
        logging_steps=10,
        report_to=[],
    ),
    train_dataset=data,
    data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
    compute_loss_func=loss,
)
pv.log_parts(trainer, loss)
trainer.train()
pv.save_pretrained(model, tokenizer, options.out)

model, tokenizer = pv.from_pretrained(options.out)
batch = tokenizer.pad(pv.encode_questions(tokenizer, [problems[0].question]), return_tensors="pt")
answer = tokenizer.decode(model.generate(**batch, max_new_tokens=16)[0], skip_special_tokens=True)
print(f"{problems[0].question} -> {answer}")
