"""Plant small bugs one at a time, and see whether the tests notice: `make mutants`."""
