"""Numbers in text, in ids and as vectors."""
