"""The table of all methods: what each is, who proposed it, what it changes, and which models it fits."""

from placevalue.experiments.methods import METHODS, Method
from placevalue.loss.number_losses import NUMBER_LOSSES
from placevalue.numbers.config import Layout
from placevalue.numbers.rewrites import rewrite_text
from placevalue.numbers.vectors import VECTORS
from placevalue.tokenizer.tokenizer import describe_layout

_PAPER = "Sivakumar and Moosavi"
_NTL = "Zausinger et al. 2025"
SOURCES = {
    "digits": _PAPER, "bare": "Geva et al. 2020", "agg-before": _PAPER, "agg-after": _PAPER, "pause": _PAPER,
    "pause-after": _PAPER, "pause-10": "Goyal et al. 2024", "aux-hard": _PAPER, "ntl-was": _NTL, "ntl-mse": _NTL,
    "del": "Zheng et al. 2026", "smmd": "Zuo et al. 2026", "ntil": "Fei et al. 2025", "dist2": "Chung et al. 2025",
    "magnitude-probe": "Yuchi, Du and Eisner 2026", "reversed": "Lee et al. 2023",
    "reversed-both": "Nogueira et al. 2021",
    "numerologic": "Schwartz et al. 2024", "commas": "Singh and Strouse 2024", "10e": "Nogueira et al. 2021",
    "words": "Wallace et al. 2019", "place-names": "Muffo et al. 2022", "scientific": "Zhang et al. 2020",
    "abacus": "McLeish et al. 2024", "value-aware": "arXiv 2601.09706", "fone-in": "Zhou et al. 2025",
    "bits-in": "Kreitner et al. 2025", "xval-in": "Golkar et al. 2023", "dice": "Sundararaman et al. 2020",
}  # fmt: skip
"""Who proposed a method that is not ours."""
HEADER = ("method", "what it is", "source", "12 in tokens", "new rows", "parameters", "training", "opens in", "fits")


def method_rows() -> list[tuple[str, ...]]:
    """The cells of each entry of `METHODS`, by `HEADER`."""
    return [_row(name, method) for name, method in METHODS.items()]


def to_markdown() -> str:
    """The table for docs/methods.md."""
    lines = [HEADER, ("---",) * len(HEADER), *((f"`{row[0]}`", *row[1:]) for row in method_rows())]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _row(name: str, method: Method) -> tuple[str, ...]:
    layout = Layout(method.token, method.position, rewrite=method.rewrite, pauses=method.pauses, markers=method.markers)
    rows = "4" if method.digits and layout.needs_rows else "none"
    held = method.aggregation is not None or method.vector is not None
    ours = held or method.rewrite is not None or method.pauses > 0
    return (
        name,
        method.about,
        SOURCES.get(name, "none" if not method.digits else "placevalue"),
        _tokens(method, layout),
        rows,
        _parameters(method),
        _training(method),
        "placevalue" if ours else "any library",
        _fits(method),
    )


def _tokens(method: Method, layout: Layout) -> str:
    """How the number 12 stands in a text."""
    if not method.digits:
        return "as before"
    written = describe_layout(layout).removeprefix("12 as ")
    if method.rewrite is not None:
        text = rewrite_text("12", method.rewrite, layout.pattern)
        return f"`{text}`, digits split" + (", markers around numbers" if method.markers else "")
    return f"`{written}`" + (f", {method.pauses} [PAUSE] after each question" if method.pauses else "")


def _parameters(method: Method) -> str:
    """How many parameters the method's vector has, in a model whose embeddings have d entries."""
    build = None if method.vector is None else VECTORS[method.vector].build
    if build is None:
        return "none"
    one, two = (sum(weight.numel() for weight in build(dim).parameters()) for dim in (1, 2))
    squares = (two - 2 * one) // 2
    return " + ".join([*(["d²"] if squares else []), f"{one - squares} d".removeprefix("1 ")])


def _training(method: Method) -> str:
    """What is minimised."""
    if method.loss is None:
        return "CE"
    if method.mix == "share":
        return f"0.6 CE + 0.4 AUX, {method.loss}"
    definition = NUMBER_LOSSES[method.loss]
    return f"CE + {definition.weight if method.loss_weight is None else method.loss_weight:g} L"


def _fits(method: Method) -> str:
    """Which pretrained models."""
    if not method.digits:
        return "all"
    return "fast tokenizers" if method.markers else "fast tokenizers with spaces in their ids"
