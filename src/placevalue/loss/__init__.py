"""The auxiliary loss."""
