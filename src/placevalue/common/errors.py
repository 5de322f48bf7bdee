"""The errors that placevalue raises: one root, and one child for each kind of cause."""


class PlacevalueError(Exception):
    """The base of every error that placevalue raises on purpose."""


class ConfigError(PlacevalueError):
    """A setting has an unknown or unusable value."""


class TokenizerError(PlacevalueError):
    """A tokenizer does not support numbers, or does not belong to the model."""


class AttachError(PlacevalueError):
    """A model cannot be attached, detached or trained in the state it is in."""


class CheckpointError(PlacevalueError):
    """A checkpoint folder is incomplete or inconsistent."""


class ModelError(PlacevalueError):
    """A model or tokenizer could not be found or downloaded."""


class DataError(PlacevalueError):
    """A data file or record is missing, damaged or inconsistent."""


class RoomError(PlacevalueError):
    """A disk has no room for a file."""


class TrainingError(PlacevalueError):
    """A run cannot be trained, continued or scored."""


class DivergedError(TrainingError):
    """The training loss became NaN or infinite."""


def in_one_line(error: Exception) -> str:
    """An error as one line, for lists of failures."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
