"""placevalue teaches any Hugging Face language model what a number is worth."""

from placevalue.adapters import trainable_tokens
from placevalue.aggregation import AGGREGATIONS, per_number, place_weights
from placevalue.checkpoints import from_pretrained, load_number_tokenizer, save_pretrained
from placevalue.encoding import encode_pairs, encode_questions, encode_texts
from placevalue.errors import PlacevalueError
from placevalue.evaluation import evaluate
from placevalue.generation import generate
from placevalue.integration import RequireAttached, attach, check_attached, detach, is_attached
from placevalue.losses import AggregationLoss
from placevalue.metrics import METRICS
from placevalue.neighbours import neighbourhood_f1
from placevalue.numerals import PATTERNS, Numeral, find_numerals
from placevalue.tokenization import marker_ids, number_tokenizer
from placevalue.trainers import AggregationLossMixin, log_parts

__version__ = "0.1.0"

__all__ = [
    "AGGREGATIONS",
    "METRICS",
    "PATTERNS",
    "AggregationLoss",
    "AggregationLossMixin",
    "Numeral",
    "PlacevalueError",
    "RequireAttached",
    "attach",
    "check_attached",
    "detach",
    "encode_pairs",
    "encode_questions",
    "encode_texts",
    "evaluate",
    "find_numerals",
    "from_pretrained",
    "generate",
    "is_attached",
    "load_number_tokenizer",
    "log_parts",
    "marker_ids",
    "neighbourhood_f1",
    "number_tokenizer",
    "per_number",
    "place_weights",
    "save_pretrained",
    "trainable_tokens",
]
