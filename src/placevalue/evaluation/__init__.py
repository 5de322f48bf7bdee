"""How good answers are, and how sure that is."""
