"""Speed of placevalue relative to the alternatives, both measured in one run: `python -m benchmarks`."""
