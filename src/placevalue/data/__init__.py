"""Problems to train and test on: the bundled MAWPS and FERMAT, FERMAT's generated sets, and your own files."""

from placevalue.data.corpora import (
    CORPORA,
    corpus_licence,
    data_checksum,
    data_sources,
    is_made,
    load_data,
    load_problems,
)
from placevalue.data.fermat import FERMAT_SETS, PAPER_SETS
from placevalue.data.fermat_templates import FermatConfig, generate_fermat, write_fermat
from placevalue.data.files import read_problems
from placevalue.data.problem import Problem, to_dataset

__all__ = [
    "CORPORA",
    "FERMAT_SETS",
    "PAPER_SETS",
    "FermatConfig",
    "Problem",
    "corpus_licence",
    "data_checksum",
    "data_sources",
    "generate_fermat",
    "is_made",
    "load_data",
    "load_problems",
    "read_problems",
    "to_dataset",
    "write_fermat",
]
