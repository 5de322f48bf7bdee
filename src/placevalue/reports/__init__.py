"""Finished experiments as tables, charts and one page."""
