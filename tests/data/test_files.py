"""Files that somebody else wrote: problems, or one error that names the file."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placevalue.common.errors import DataError
from placevalue.data import Problem, read_problems
from placevalue.data.problem import FIELDS, to_json_lines

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
rows = st.lists(st.dictionaries(st.sampled_from([*FIELDS, "other"]), values, max_size=6) | values, max_size=4)
cells = st.sampled_from(["question", "answer", "id", ",", "\n", "\r\n", '"', "1", " ", "", "é"])
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
filled = texts.filter(str.strip)
problems = st.builds(Problem, texts, filled, filled, st.none() | texts, st.none() | texts)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def read(path, content):
    """What a file gives: problems, or one error that names it."""
    path.write_bytes(content)
    try:
        found = read_problems(path)
    except DataError as error:
        assert all(line.startswith(str(path)) for line in str(error).splitlines() if not line.endswith(" more"))
        return None
    assert found and len({problem.id for problem in found}) == len(found)
    for problem in found:
        assert problem.question.strip() and problem.answer.strip()
        assert all(value is None or isinstance(value, str) for value in vars(problem).values())
    return found


@given(content=st.binary(max_size=60) | st.lists(cells.map(str.encode) | st.binary(max_size=3)).map(b"".join))
@pytest.mark.parametrize("name", ["any.jsonl", "any.csv"])
def test_any_bytes_give_problems_or_one_error(folder, name, content):
    read(folder / name, content)


@given(rows=rows)
def test_any_json_gives_problems_or_one_error(folder, rows):
    read(folder / "any.jsonl", "\n".join(map(json.dumps, rows)).encode())


@given(rows=rows)
def test_any_json_in_its_own_characters_gives_problems_or_one_error(folder, rows):
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    read(folder / "any.jsonl", text.encode(errors="surrogatepass"))


@given(table=st.lists(st.lists(cells | texts, min_size=1, max_size=4), max_size=4), header=st.permutations(FIELDS))
def test_any_table_gives_problems_or_one_error(folder, table, header):
    text = io.StringIO()
    csv.writer(text).writerows([header[: len(table[0]) if table else 2], *table])
    read(folder / "any.csv", text.getvalue().encode())


@given(written=st.lists(problems, min_size=1, max_size=4, unique_by=lambda problem: problem.id))
def test_written_problems_are_read_as_they_were(folder, written):
    assert read(folder / "whole.jsonl", to_json_lines(written).encode()) == written
    text = io.StringIO()
    csv.writer(text).writerows([FIELDS, *([getattr(each, name) for name in FIELDS] for each in written)])
    assert read(folder / "whole.csv", text.getvalue().encode()) == written
