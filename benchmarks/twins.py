"""Two models that differ in one thing and take training steps in turn."""

from collections.abc import Callable

from transformers import T5Config, T5ForConditionalGeneration


def small_t5(vocabulary: int) -> T5ForConditionalGeneration:
    """A T5 of about ten million parameters, without dropout."""
    config = T5Config(vocab_size=vocabulary, d_model=192, d_kv=32, num_heads=6, d_ff=768, num_layers=4)
    config.dropout_rate, config.decoder_start_token_id = 0.0, 0
    return T5ForConditionalGeneration(config)


def take_turns(first: Callable[[], float], second: Callable[[], float], pairs: int) -> tuple[list[float], list[float]]:
    """Time two functions alternately, and return the seconds that each call of either reports.

    Each pair runs in the opposite order of the pair before, so that other load on the machine slows both equally.
    """
    seconds: tuple[list[float], list[float]] = ([], [])
    for pair in range(pairs):
        for which in (0, 1) if pair % 2 else (1, 0):
            seconds[which].append((first, second)[which]())
    return seconds
