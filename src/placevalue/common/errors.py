"""The errors a user can meet: one root, one child for each kind of cause."""


class PlacevalueError(Exception):
    """Root of every error raised on purpose by placevalue."""


class ConfigError(PlacevalueError):
    """A setting has a value that placevalue does not know or cannot use."""


class TokenizerError(PlacevalueError):
    """A tokenizer cannot carry numbers, or is not the one a model was made for."""


class AttachError(PlacevalueError):
    """A model cannot be attached, detached or trained in the state it is in."""


class CheckpointError(PlacevalueError):
    """A folder does not hold what it should."""


class ModelError(PlacevalueError):
    """A model or tokenizer could not be found or fetched."""


class DataError(PlacevalueError):
    """A file of data or of records is missing, damaged, or not what it should be."""


class TrainingError(PlacevalueError):
    """A run cannot be trained, taken up again, or scored."""


class DivergedError(TrainingError):
    """The loss of a run is no number any more."""


def in_one_line(error: Exception) -> str:
    """What happened, for a list of what failed."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
