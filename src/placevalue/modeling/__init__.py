"""Models that read numbers."""
