"""The auxiliary loss, and the trainers that use it."""
