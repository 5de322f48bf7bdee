"""Inject faults and see what comes of each: `python -m tools.faults` writes the table of docs/reliability.md.

A fault is a function that takes a `Bench`, injects the fault, asserts that nothing was lost or quietly different, and
returns what it saw in a few words. To add one, write the function and add its line to its module's `FAULTS`.
"""
