"""From text to ids: the digit tokenizer, encoded questions and answers, padded batches."""
