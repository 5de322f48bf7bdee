"""From a recipe to trained models and their predictions, one run or many."""
