"""The verbs of the command line: each has a function that defines its flags and one that runs it."""
