"""Models that read numbers: the hooks, attaching and detaching, PEFT, saving and loading."""
