"""Write your own method: one entry, which recipes, `pv.train` and `pv.reproduce` then know by its name.

python examples/own_method.py my-recipe.yaml
"""

import sys

import placevalue as pv

pv.METHODS["bare-sum"] = pv.Method(
    "[AGG] before bare digits, their plain sum", markers=False, token="agg", aggregation="sum"
)
recipe = pv.read_recipe(sys.argv[1], ["methods=[untouched, bare-sum]"])
record = pv.train(recipe, method="bare-sum", out="my-run")
print(f"{record.method}: {record.steps} steps, {record.counts['question_tokens']} tokens in questions")
