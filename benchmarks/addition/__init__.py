"""Study: does `AggregationLoss` help a tiny model learn to add? `python -m benchmarks.addition run`, then `report`."""
