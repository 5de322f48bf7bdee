"""Your own files, whatever their columns are called."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placevalue.common.errors import ConfigError, DataError
from placevalue.data import data_checksum, data_sources, load_data, read_problems
from placevalue.data.columns import FileName, parse_name, with_columns
from placevalue.data.problem import to_dataset
from placevalue.experiments.recipe import make_recipe

ROWS = [("1 and 2?", "3"), ("4 and 5.5?", "9.5")]
QUERY = "?question=The problem&answer=Result"


@pytest.fixture
def files(tmp_path):
    """The same problems in every kind of file."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from datasets import Dataset, DatasetDict

    columns = {"The problem": [row[0] for row in ROWS], "Result": [row[1] for row in ROWS], "more": [[1], [2]]}
    lines = [json.dumps({"The problem": question, "Result": answer, "question": "no"}) for question, answer in ROWS]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (tmp_path / "a.csv").write_text("The problem,Result\n" + "".join(f"{a},{b}\n" for a, b in ROWS))
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    Dataset.from_dict(columns).save_to_disk(tmp_path / "plain")
    DatasetDict({"train": Dataset.from_dict(columns)}).save_to_disk(tmp_path / "split")
    return tmp_path


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet", "plain", "split"])
def test_every_kind_of_file_is_read_by_its_columns(files, name):
    spec = f"{files / name}{QUERY}" + ("&split=train" if name == "split" else "")
    assert [(each.question, each.answer) for each in load_data(spec)] == ROWS
    (source,) = data_sources(spec)
    assert source.startswith("file:") and data_sources(spec) == (source,)
    columns = {"question": "The problem", "answer": "Result"}
    short = str(files / name) + ("?split=train" if name == "split" else "")
    assert data_checksum(with_columns(short, columns)) == data_checksum(spec)


def test_a_recipe_names_the_columns_once(files):
    data = {"train": str(files / "a.csv"), "dev": f"{files / 'a.csv'}?answer=The problem", "test": ["mawps:test"]}
    values = {"model": "m", "methods": ["digits"], "data": data}
    columns = {"question": "The problem", "answer": "Result"}
    recipe = make_recipe(values | {"data": data | {"columns": columns}})
    assert load_data(recipe.data.train)[0].answer == "3" and load_data(recipe.data.dev)[0].answer == "1 and 2?"
    assert recipe.data.test == ("mawps:test",)
    assert "columns" not in recipe.run().to_dict()["data"]
    again = make_recipe(values | {"data": {**recipe.run().to_dict()["data"], "columns": columns}})
    assert again.data.train == recipe.data.train
    with pytest.raises(ConfigError, match="data.columns: 'anwser' is unknown.*answer"):
        make_recipe(values | {"data": data | {"columns": {"anwser": "Result"}}})


@given(st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_any_column_name_survives_the_name_of_the_file(column):
    found = parse_name(str(FileName(parse_name("a.csv").path, {"question": column}, "x=&?%")))
    assert found.columns == {"question": column} and found.split == "x=&?%"


def test_what_is_missing_is_named(files):
    for name in ("a.csv", "a.parquet", "plain"):
        with pytest.raises(DataError, match="no column question and no column answer, found .*The problem"):
            read_problems(files / name)
    with pytest.raises(DataError, match=r"has the splits train: choose one, .*split\?split=train"):
        read_problems(f"{files / 'split'}{QUERY}")
    with pytest.raises(DataError, match="has no splits"):
        read_problems(f"{files / 'plain'}{QUERY}&split=train")
    with pytest.raises(ConfigError, match="'colour' is unknown"):
        read_problems(f"{files / 'a.csv'}?colour=red")
    with pytest.raises(ConfigError, match="question has no value"):
        read_problems(f"{files / 'a.csv'}?question")
    (files / "torn.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match="torn.parquet: not a Parquet file"):
        read_problems(files / "torn.parquet")


def test_rows_of_a_parquet_file_are_counted_as_rows(tmp_path):
    to_dataset(read_problems(_csv(tmp_path))).to_parquet(tmp_path / "a.parquet")
    assert [each.id for each in read_problems(tmp_path / "a.parquet")] == ["x.csv:2", "x.csv:3"]
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"question": ["a", None], "answer": [1.50, 2.0]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match="b.parquet, row 2: question is missing"):
        read_problems(tmp_path / "b.parquet")


def _csv(folder):
    (folder / "x.csv").write_text("question,answer\na,1\nb,2\n")
    return folder / "x.csv"
