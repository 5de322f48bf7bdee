"""Does `AggregationLoss` help a tiny model to add? `python -m benchmarks.addition run`, then `report`."""
