"""Builds `placevalue-tiny`, the model inside the wheel. Run every step from the root of the repository.

1. `python -m tools.tiny_model prepare runs/tiny` writes the pre-training data and the model with its first weights.
2. `placevalue train tools/tiny_model/pretrain.yaml --out runs/tiny/trained` trains it: minutes on a GPU.
3. `python -m tools.tiny_model take runs/tiny/trained` copies the trained model into the wheel.

The modules, in the order data moves through them: `gsm8k`, `vocabulary`, `grammar`, `wordproblems`, `pretraining`
(the corpus) and `model` (tokenizer, shape and files). `docs/tiny.md` is the model card.
"""
