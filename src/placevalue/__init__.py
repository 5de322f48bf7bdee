"""placevalue teaches any Hugging Face language model what a number is worth."""

from placevalue.common.errors import PlacevalueError
from placevalue.evaluation.metrics import METRICS
from placevalue.evaluation.scoring import evaluate
from placevalue.experiments.predict import generate
from placevalue.loss.aggregation_loss import AggregationLoss
from placevalue.loss.trainers import AggregationLossMixin, log_parts
from placevalue.modeling.attach import RequireAttached, attach, check_attached, detach, is_attached
from placevalue.modeling.checkpoints import from_pretrained, load_number_tokenizer, save_pretrained
from placevalue.modeling.peft_support import trainable_tokens
from placevalue.numbers.aggregation import AGGREGATIONS, per_number, place_weights
from placevalue.numbers.neighbours import neighbourhood_f1
from placevalue.numbers.numerals import PATTERNS, Numeral, find_numerals
from placevalue.tokenizer.encoding import encode_pairs, encode_questions, encode_texts
from placevalue.tokenizer.tokenizer import marker_ids, number_tokenizer

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
