"""From text to ids and batches."""
