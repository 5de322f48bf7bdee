import ast
import csv
import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import value_of
from placevalue.cli.main import main
from placevalue.common.errors import ConfigError, DataError, PlacevalueError
from placevalue.data import (
    CORPORA,
    FERMAT_SETS,
    PAPER_SETS,
    FermatConfig,
    Problem,
    corpus_licence,
    data_checksum,
    data_sources,
    fermat,
    fermat_templates,
    files,
    generate_fermat,
    load_data,
    load_problems,
    read_problems,
    to_dataset,
    write_fermat,
)
from placevalue.data.arithmetic import evaluate_columns, operation_of, parse_expression
from placevalue.data.copies import ALIKE, likeness
from placevalue.data.fermat_templates import PARTS, number_classes, read_templates, split_templates
from placevalue.data.mawps import SPLITS
from placevalue.data.numeracy import LEVELS
from placevalue.data.problem import same_words
from placevalue.numbers.numerals import shortest_form

BUNDLED = Path(files.__file__).parent / "bundled"
SMALL = {"size": 2000, "dev_size": 200, "test_size": 400}
# What seed 42 gives, everywhere and always: the sha256 of train.jsonl of 2,000 rows.
TRAIN_SHA256 = {
    ("paper", "short"): "7e66a9242d74c04554b6cd6ada3f2d726713c931adea0c84ab569d70d77c4d3e",
    ("script", "short"): "2228971e6f696705ff1de2e89d88f35b883785e3ad06522b911bc58a821671f4",
    ("paper", "rounded"): "724ee6cfc04c69a189177b4542c3e8e30da22d488c7330dae6582d100126057e",
}


@pytest.fixture(scope="module", params=TRAIN_SHA256, ids="-".join)
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fermat")
    config = FermatConfig(large=request.param[0], answers=request.param[1], **SMALL)
    return config, folder, write_fermat(config, folder)


# The corpora


@pytest.mark.parametrize("name", FERMAT_SETS)
def test_every_fermat_set_has_1111_rows_matched_by_index(name):
    problems = load_problems("fermat", set=name)
    assert len(problems) == 1111 and [problem.id for problem in problems] == [f"fermat:{name}:{i}" for i in range(1111)]
    assert all(problem.question == problem.question.strip() != "" and problem.answer for problem in problems)


def test_fermat_questions_and_answers_belong_together():
    """The numbers of an Original question are those of its equation, and the equation gives the answer."""
    for problem in load_problems("fermat", set="Original"):
        asked = Counter(map(Decimal, re.findall(r"\d+(?:\.\d+)?", problem.question.replace(",", ""))))
        used = Counter(map(Decimal, re.findall(r"\d+(?:\.\d+)?", problem.equation)))
        assert not used - asked or len(used - asked) == 1, problem
        value = value_of(problem.equation)
        assert value == Fraction(problem.answer) or problem.answer == "3.33333"


def test_fermat_files_keep_questions_from_answers():
    for path in BUNDLED.glob("fermat/*.[qa].gz"):
        keys = set().union(*(json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()))
        assert keys == ({"index", "question"} if ".q." in path.name else {"index", "answer", "equation"})


def test_published_answers_are_positive_and_rounded_to_six_decimals():
    for name in ("1000+", "4_digit_integer", "2dp_random"):
        for problem in load_problems("fermat", set=name):
            exact = value_of(problem.equation)
            assert Fraction(problem.answer) == round(exact, 6) > 0
            assert "." in problem.answer


def test_operations_pool_the_papers_ten_sets():
    found = Counter(problem.operation for name in PAPER_SETS for problem in load_problems("fermat", set=name))
    assert len(PAPER_SETS) == 10 and len(set(FERMAT_SETS)) == 19
    assert found == {"a+b": 1540, "a-b": 1620, "a*b": 1130, "a/b": 1020, None: 5800}


def test_500_rows_of_commuted_cannot_be_commuted():
    rows = load_problems("fermat", set="Commuted")
    blank = [problem for problem in rows if problem.answer == "Not commutable"]
    assert len(blank) == 500 and all(problem.question == problem.equation == "Not commutable" for problem in blank)


def test_answers_that_16_target_tokens_cannot_hold():
    """[F], the characters, [/F] and the end: 209 answers of 1000+ are too long, which the paper's limit implies."""
    assert sum(len(problem.answer) + 3 > 16 for problem in load_problems("fermat", set="1000+")) == 209


def test_mawps_is_split_1500_373_500():
    parts = {split: load_problems("mawps", split=split) for split in SPLITS}
    assert {split: len(rows) for split, rows in parts.items()} == {"train": 1500, "dev": 373, "test": 500}
    ids = [problem.id for rows in parts.values() for problem in rows]
    assert sorted(ids) == sorted(f"mawps:{number}" for number in range(1, 2374))
    assert data_checksum("mawps:test") == "f04d07a8b715e72f3b9d87cd92e147513212229d9668194dfb452955d847c46a"


def test_the_deduplicated_split_has_no_question_twice_across_parts():
    plain = {split: load_problems("mawps", split=split) for split in SPLITS}
    clean = {split: load_problems("mawps", split=split, deduplicated=True) for split in SPLITS}
    words = {split: {same_words(problem.question) for problem in rows} for split, rows in clean.items()}
    assert not words["test"] & (words["train"] | words["dev"]) and not words["dev"] & words["train"]
    assert clean["test"] == plain["test"]
    assert {split: len(rows) for split, rows in clean.items()} == {"train": 1380, "dev": 359, "test": 500}
    train = {same_words(problem.question) for problem in plain["train"]}
    dev = {same_words(problem.question) for problem in plain["dev"]}
    assert sum(same_words(problem.question) in train for problem in plain["test"]) == 67
    assert sum(same_words(problem.question) in dev for problem in plain["test"]) == 14


def test_nearly_all_of_fermats_originals_are_mawps_problems():
    bare = lambda problem: re.sub(r"[^a-z0-9]", "", problem.question.lower())  # noqa: E731
    mawps = {bare(problem) for split in SPLITS for problem in load_problems("mawps", split=split)}
    assert sum(bare(problem) in mawps for problem in load_problems("fermat", set="Original")) == 1103


def test_mawps_answers_are_in_their_shortest_form():
    problems = [problem for split in SPLITS for problem in load_problems("mawps", split=split)]
    by_id = {problem.id: problem for problem in problems}
    assert by_id["mawps:1"] == Problem(
        "mawps:1",
        "Bryan took a look at his books as well . If Bryan has 56 books in each of his 9 bookshelves , how many books "
        "does he have in total ?",
        "504",
        "x=56*9",
        "a*b",
    )
    assert by_id["mawps:98"].answer == "-0.04545"
    for problem in problems:
        assert re.fullmatch(r"-?\d+(\.\d*[1-9])?", problem.answer), problem


@pytest.mark.parametrize(
    ("equation", "operation"),
    [("x=56*9", "a*b"), ("X=(27.0*16.0)", "a*b"), ("(3-1)", "a-b"), ("X=.5+2", "a+b"), ("x=8/2", "a/b"),
     ("X=1+2+3", None), ("X-3=4", None), ("x=-(1)", None), ("x=7", None), ("Not commutable", None), ("", None)],
)  # fmt: skip
def test_operation_is_one_operator_between_two_numbers(equation, operation):
    assert operation_of(equation) == operation


@pytest.mark.parametrize(
    ("number", "text"), [(504.0, "504"), ("100", "100"), (1e22, "1" + "0" * 22), (-0.0, "0"), ("0.50", "0.5"), (1e-7, "0.0000001")]
)  # fmt: skip
def test_shortest(number, text):
    assert shortest_form(number) == text


# Checksums and licences


def test_every_bundled_file_has_its_checksum_and_every_corpus_its_licence():
    listed = {line.split("  ")[1] for line in (BUNDLED / "SHA256SUMS").read_text().splitlines()}
    here = {path.relative_to(BUNDLED).as_posix() for path in BUNDLED.rglob("*") if path.is_file()}
    assert here == listed | {"SHA256SUMS"}
    for name in listed:
        files.read_bundled(name)
    licences = {name: corpus_licence(name).partition(",")[0] for name in CORPORA}
    assert {name for name, licence in licences.items() if licence == "MIT License"} == CORPORA.keys() - LEVELS.keys()
    assert {licences[name] for name in LEVELS} == {"Apache License 2.0"}


@pytest.mark.parametrize("damage", ["cut", "bit", "gone"])
def test_a_damaged_bundled_file_is_reported_by_name(damage, monkeypatch):
    whole = files._bundled

    def damaged(name):
        content = whole(name)
        if name != "fermat/1000+.a.gz":
            return content
        if damage == "gone":
            raise FileNotFoundError(name)
        return content[:-20] if damage == "cut" else bytes([content[0] ^ 1]) + content[1:]

    monkeypatch.setattr(files, "_bundled", damaged)
    with pytest.raises(DataError, match=r"fermat/1000\+\.a\.gz is (damaged|missing)"):
        load_data("fermat:1000+")
    assert load_data("fermat:Original")


# Your own files


def write(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_own_files_give_problems(tmp_path):
    jsonl = write(
        tmp_path / "mine.jsonl",
        '{"question": "1 and 2?", "answer": 3.0, "other": [1]}\n\n'
        '{"id": "b", "question": "é", "answer": "x", "equation": "1+2", "operation": "a+b"}\n',
    )
    expected = [Problem("mine.jsonl:1", "1 and 2?", "3"), Problem("b", "é", "x", "1+2", "a+b")]
    assert read_problems(jsonl) == load_data(str(jsonl)) == expected
    table = write(
        tmp_path / "mine.csv",
        '\ufeffid,answer,note,question,equation,operation\n,3,,1 and 2?,,\nb,x,n,"é",1+2,a+b\n',
    )
    assert load_data(table) == [Problem("mine.csv:2", "1 and 2?", "3"), expected[1]]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.jsonl", "", "a.jsonl: the file is empty"),
        ("a.csv", "", "a.csv: the file is empty"),
        ("a.csv", "question,answer\n", "a.csv: the file is empty"),
        ("a.csv", "question,reply\nq,a\n", "a.csv, line 1: no column answer"),
        ("a.csv", "x,y\nq,a\n", "a.csv, line 1: no column question and no column answer"),
        ("a.csv", "question,answer\nq,1\nq\n", "a.csv, line 3: 1 columns, expected 2"),
        ("a.csv", 'question,answer\nq,"1\n', "a.csv, line 2: not CSV"),
        ("a.csv", b"question,answer\nq,\xff\n", "a.csv: not text in UTF-8"),
        ("a.csv", "question,answer\nq,\n", "a.csv, line 2: answer is missing"),
        ("a.jsonl", '{"question": "q", "answer": "1"}\n{"question": "q", "ans', "a.jsonl, line 2: not a JSON object"),
        ("a.jsonl", '{"question": "q"}\n{"answer": "q"}\n', "line 1: answer is missing\n.*line 2: question is missing"),
        ("a.jsonl", '{"question": " ", "answer": true}\n', "line 1: question is empty\n.*answer is True"),
        ("a.jsonl", '{"question": "q", "answer": NaN}\n', "line 1: answer is nan"),
        ("a.jsonl", '{"question": "q", "answer": 1, "id": "i"}\n' * 2, "line 2: id 'i' is also in line 1"),
        ("a.jsonl", "{}\n" * 20, "and 30 more"),
        ("a.txt", "", "expected a file that ends in .jsonl or .csv"),
    ],
)
def test_faults_name_file_and_line(tmp_path, name, text, says):
    with pytest.raises(DataError, match=f"(?s){says}"):
        read_problems(write(tmp_path / name, text))


def test_unknown_names_list_what_is_known(tmp_path):
    for call, says in (
        (lambda: load_data("mawp:train"), "mawps:train dev test"),
        (lambda: load_data("mawps"), "fermat:Original"),
        (lambda: load_data("mawps:valid"), "mawps:train, mawps:dev, mawps:test"),
        (lambda: load_data("fermat:original"), "fermat:Original, fermat:Commuted"),
        (lambda: load_problems("gsm8k"), "one of fermat, mawps"),
        (lambda: load_problems("fermat"), "set=None: expected one of Original"),
        (lambda: load_problems("fermat", split="test"), "no split"),
        (lambda: load_problems("mawps", set="test"), "give split="),
    ):
        with pytest.raises(ConfigError, match=re.escape(says)):
            call()
    with pytest.raises(DataError, match="no such file"):
        load_data(tmp_path / "none.jsonl")


def test_sources_and_checksums(tmp_path, made):
    _, folder, _ = made
    own = write(tmp_path / "own.jsonl", (folder / "dev.jsonl").read_bytes())
    assert data_sources("mawps-dedup:dev") == ("mawps",)
    assert data_sources("fermat:1000+") == ("fermat",)
    assert data_sources(folder / "train.jsonl") == ("fermat-templates",)
    assert data_sources(own) == (f"file:{files.file_hash(own)[:12]}",)
    assert data_checksum(own) == data_checksum(folder / "dev.jsonl") != data_checksum(folder / "train.jsonl")
    assert len({data_checksum(f"{name}:{part}") for name in ("mawps", "mawps-dedup") for part in SPLITS}) == 5


def test_datasets(monkeypatch):
    datasets = pytest.importorskip("datasets")
    data = to_dataset([Problem("1", "1 and 2?", "3")])
    assert isinstance(data, datasets.Dataset)
    assert data[0] == {"id": "1", "question": "1 and 2?", "answer": "3", "equation": None, "operation": None}
    assert {feature.dtype for feature in data.features.values()} == {"string"}
    assert len(to_dataset(load_data("mawps:dev"))) == 373
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(PlacevalueError, match=r"pip install 'placevalue\[all\]'"):
        to_dataset([])


# Arithmetic


@pytest.mark.parametrize(
    "text",
    ["", " ", "num0", "num", "num1x", "x + 1", "abs(num1)", "num1.real", "num1 ** 2", "9**9**9**9", "num1 // num2",
     "num1 % 2", "1e9", "1_000", "num1 num2", "num1 +", "(num1", "num1)", "()", "+1", "num1, num2", "__import__('os')",
     "lambda: 1", "num1 if num2 else num3", "[1]", "'a'", "1 < 2", "num1\x00", "٣", "(" * 60 + "1" + ")" * 60,
     "-" * 60 + "1", "-" * 999 + "1", "(" * 999, "1+" * 600 + "1", "num1 := 2", "½", "1.", "0x1F", "1j", "True", "#", "num1 and num2",
     "not num1", "~num1", "num1()", "num100", "ｎｕｍ1"],
)  # fmt: skip
def test_the_parser_refuses_what_is_no_arithmetic(text):
    with pytest.raises(DataError, match="templates.csv, line 7: .*not arithmetic"):
        parse_expression(text, "templates.csv, line 7")


def test_bundled_expressions_give_the_steps_they_always_gave():
    """The sha256 of all programs, those of the hand-written parser before; what is not arithmetic is refused."""
    texts = [cell for row in csv.DictReader(files.read_bundled("fermat/templates.csv.gz").decode().splitlines())
             for cell in row.values() if cell]  # fmt: skip
    texts += [row["equation"] for row in json.loads(files.read_bundled("mawps/mawps.json.gz"))]
    texts += [row["equation"] for name in FERMAT_SETS for row in fermat._rows(name, "a")]
    hashed, read = hashlib.sha256(), 0
    for text in texts:
        try:
            steps = repr(parse_expression(re.sub(r"^\s*[xX]\s*=", "", text)).steps)
            read += 1
        except DataError:
            steps = "error"
        hashed.update(f"{steps}\n".encode())
    assert (len(texts), read) == (24160, 23185)
    assert hashed.hexdigest() == "a5cb6578097c6d4b7e2ad91ca796e0b730ac8b9d6a934ad8b1bba8c39d0224b2"


def test_a_refused_template_is_named_by_its_line():
    good = "templates,answers,expressions\nq num1,( num1 ),a\n"
    assert [template.line for template in read_templates(good)] == [2]
    with pytest.raises(DataError, match=r"templates.csv, line 3: 'open\(num1\)'.*expected only numbers"):
        read_templates(good + "q,open(num1),a\n")
    with pytest.raises(DataError, match="templates.csv, line 3: expected a question and its arithmetic"):
        read_templates(good + "q\n")


def test_constants_and_odd_whitespace_are_read():
    (template,) = read_templates('templates,answers,expressions\n"{a} of num1 , num12",\t( num1/100 ) * num12 - .5,x\n')
    assert template.shown == (1, 12) and template.equation == "(num1/100)*num12-.5"
    assert template.program == parse_expression(template.equation)
    assert value_of(template.equation, num1=50, num12=3) == 1
    assert fermat_templates._with_gaps(template.question, template.shown).format(7, 8) == "{a} of 7 , 8"


def trees():
    """Random expressions as text, with the value that Python's own fractions give; None where 0 divides."""
    names = st.integers(1, 3).map(lambda n: (f"num{n}", lambda values: values[n]))
    texts = st.one_of(st.integers(0, 99).map(str), st.decimals(0, 99, places=2).map(str))
    constants = texts.map(lambda text: (text, lambda values: Fraction(text)))

    def grow(children):
        def binary(parts):
            (left, f), sign, (right, g), space = parts
            work = {"+": Fraction.__add__, "-": Fraction.__sub__, "*": Fraction.__mul__, "/": Fraction.__truediv__}[
                sign
            ]
            return f"({left}{space}{sign}{space}{right})", lambda values: work(f(values), g(values))

        pairs = st.tuples(children, st.sampled_from("+-*/"), children, st.sampled_from(["", " ", "\t"])).map(binary)
        return pairs | children.map(lambda child: (f"-{child[0]}", lambda values: -child[1](values)))

    return st.recursive(names | constants, grow, max_leaves=8)


@settings(deadline=None, max_examples=200)
@given(
    trees(),
    st.lists(st.lists(st.integers(0, 999_999), min_size=3, max_size=3), min_size=1, max_size=5),
    st.integers(0, 2),
)
def test_programs_equal_exact_fractions(tree, rows, decimals):
    text, oracle = tree
    program = parse_expression(text)
    columns = {number: np.array([row[number - 1] for row in rows]) for number in (1, 2, 3)}
    top, below, exists = evaluate_columns(program, columns, 10**decimals, 999_999)
    for index, row in enumerate(rows):
        values = {number: Fraction(value, 10**decimals) for number, value in enumerate(row, 1)}
        try:
            expected = oracle(values)
        except ZeroDivisionError:
            assert not exists[index]
            continue
        assert exists[index] and below[index] > 0
        assert Fraction(int(top[index]), int(below[index])) == expected


def test_what_64_bits_cannot_hold_is_exact():
    """99,999 to the fourth is more than 2^63: the product and the denominator of a quotient, to the last digit."""
    columns = {number: np.array([99_999, 2]) for number in (1, 2, 3, 4)}
    top, below, _ = evaluate_columns(parse_expression("num1 * num2 * num3 * num4"), columns, 1, 99_999)
    assert top.tolist() == [99996000059999600001, 16] and below.tolist() == [1, 1]
    top, below, _ = evaluate_columns(parse_expression("1 / num1 / num2 / num3 / num4"), columns, 1, 99_999)
    assert top.tolist() == [1, 1] and below.tolist() == [99996000059999600001, 16]


@settings(deadline=None, max_examples=100)
@given(st.lists(st.sampled_from(["1", " num1 ", "+", "-", "*", "/", "(", ")", " "]), max_size=12).map("".join))
def test_the_grammar_is_pythons(text):
    """What is read has the value that Python would give it."""
    try:
        parse_expression(text)
    except DataError:
        return
    try:
        expected = python_value(text, {"num1": Fraction(3)})
    except ZeroDivisionError:
        return
    assert value_of(text, num1=3) == expected


def python_value(text, names):
    """What Python's own grammar makes of an expression, with numbers as exact fractions."""
    signs = {
        ast.Add: Fraction.__add__,
        ast.Sub: Fraction.__sub__,
        ast.Mult: Fraction.__mul__,
        ast.Div: Fraction.__truediv__,
    }

    def walk(node):
        if isinstance(node, ast.BinOp):
            return signs[type(node.op)](walk(node.left), walk(node.right))
        if isinstance(node, ast.UnaryOp):
            return {ast.USub: Fraction.__neg__}[type(node.op)](walk(node.operand))
        return names[node.id] if isinstance(node, ast.Name) else Fraction(ast.get_source_segment(text, node))

    text = text.strip()
    return walk(ast.parse(text, mode="eval").body)


# The generated sets


def test_all_226_templates_parse_and_one_hides_a_number():
    found = read_templates()
    assert len(found) == 226
    assert [template.line for template in found if not template.answerable] == [90]


def test_the_same_seed_gives_the_same_rows(made):
    config, folder, record = made
    assert record["files"]["train.jsonl"]["sha256"] == TRAIN_SHA256[config.large, config.answers]
    assert record == json.loads((folder / "data.json").read_text())
    assert [record["files"][f"{part}.jsonl"]["rows"] for part in PARTS] == [2000, 200, 400]


def test_another_seed_gives_other_rows_and_block_size_none(monkeypatch):
    config = FermatConfig(size=300, dev_size=50)
    rows = generate_fermat(config)
    other = generate_fermat(FermatConfig(size=300, dev_size=50, seed=43))
    assert not {problem.question for problem in rows["train"]} & {problem.question for problem in other["train"]}
    monkeypatch.setattr(fermat_templates, "MOST_ROWS", 1000)
    assert generate_fermat(config) == rows


def test_a_test_part_changes_no_other_part():
    config = FermatConfig(size=300, dev_size=50, test_size=100)
    without = generate_fermat(replace(config, test_size=0))
    assert generate_fermat(config) | {"test": []} == without


def shape(question):
    """A question or template without its numbers."""
    return re.sub(r"num\d+|\d+(?:\.\d+)?", "#", question)


def test_no_question_is_in_two_parts(made):
    _, folder, _ = made
    parts = [{problem.question for problem in load_data(folder / f"{part}.jsonl")} for part in PARTS]
    assert sum(map(len, parts)) == len(set().union(*parts))
    train, dev, test = ({shape(question) for question in part} for part in parts)
    assert train == test and dev < train, "the wording of every test question is known"


def test_held_out_templates_are_in_one_part_only_and_unlike_those_of_others():
    parts = split_templates([template for template in read_templates() if template.answerable])
    assert {part: len(found) for part, found in parts.items()} == {"train": 158, "dev": 22, "test": 45}
    for one, other in combinations(PARTS, 2):
        texts = ([shape(each.question).replace("#", "7") for each in parts[part]] for part in (one, other))
        assert max(likeness(*each) for each in product(*texts)) < ALIKE
    rows = generate_fermat(FermatConfig(**SMALL, templates="held-out"))
    for part, found in parts.items():
        assert {shape(problem.question) for problem in rows[part]} == {shape(each.question) for each in found}
        assert all(problem.id.startswith(f"fermat-held-out:{part}:") for problem in rows[part])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fermat-templates", "fermat-held-out"])
def test_10_000_test_rows_are_in_no_other_part(name):
    parts = [{problem.question for problem in load_data(f"{name}:{part}")} for part in PARTS]
    assert len(parts[2]) > 9_900 and len(load_data(f"{name}:test")) == 10_000
    assert not parts[2] & (parts[0] | parts[1]) and not parts[0] & parts[1]
    train = "3599605480687c243fd0e394434939e51c6de729714b39afa76e9b1273d035dd"
    assert name != "fermat-templates" or data_checksum(f"{name}:train") == train, "as before there was a test part"


def test_held_out_questions_are_drawn_again():
    template = parse_template("what is num1 and num2 ?", "num1 + num2")
    numbers = fermat_templates.NumberClass("tiny", 0, 1, 3)
    possible = {f"what is {a} and {b} ?" for a in (1, 2, 3) for b in (1, 2, 3)}

    def fill(held_out):
        return fermat_templates._fill(template, numbers, 50, fermat_templates._stream(1), "short", held_out)

    assert {question for question, _, _ in fill(set())} == possible
    held_out = {"what is 1 and 2 ?", "what is 3 and 3 ?"}
    assert {question for question, _, _ in fill(held_out)} == possible - held_out


def parse_template(question, arithmetic):
    text = io.StringIO()
    csv.writer(text).writerows([["templates", "answers", "expressions"], [question, arithmetic, ""]])
    return read_templates(text.getvalue())[0]


def test_a_template_without_any_answer_is_given_up(monkeypatch):
    monkeypatch.setattr(fermat_templates, "MOST_DRAWS", 100)
    template = parse_template("num1 less num1 ?", "num1 - num1")
    with pytest.raises(DataError, match="templates.csv, line 2: no answer with small integers in .* draws"):
        fermat_templates._fill(template, number_classes("paper")[0], 3, fermat_templates._stream(1), "short", set())


def decimal_text(value):
    """A fraction as `70.0`, by long division; None where it goes on after 40 digits."""
    whole, rest = divmod(value.numerator, value.denominator)
    digits = ""
    while rest and len(digits) < 40:
        digit, rest = divmod(rest * 10, value.denominator)
        digits += str(digit)
    return None if rest else f"{whole}.{digits or '0'}"


def test_every_answer_equals_the_slow_oracles(made):
    """Python's own grammar on exact fractions, from the equation as it is written."""
    config, folder, _ = made
    for part in PARTS:
        for problem in load_data(folder / f"{part}.jsonl"):
            exact = python_value(problem.equation, {})
            if config.answers == "rounded":
                exact = round(exact, 6)
            assert problem.answer == decimal_text(exact) and Fraction(problem.answer) > 0
            assert config.answers == "rounded" or len(problem.answer) <= 15
            assert problem.operation == operation_of(problem.equation)


@pytest.mark.parametrize(
    ("top", "below", "text"),
    [(1, 8, "0.12"), (3, 8, "0.38"), (1, 200, "0.0"), (3, 200, "0.02"), (199, 200, "1.0"), (1, 80, "0.01"),
     (1251, 10_000, "0.13"), (1249, 10_000, "0.12"), (7, 1, "7.0"), (35, 10, "3.5")],
)  # fmt: skip
def test_halves_go_to_the_even_digit(top, below, text):
    assert fermat_templates._write_answer(top, below, 2) == text
    assert Decimal(text) == round(Decimal(top) / below, 2)  # as Python rounds


def test_rows_come_from_templates_and_show_their_numbers(made):
    _, folder, _ = made
    patterns = Counter(template.question for template in read_templates() if template.answerable)
    used = Counter()
    shapes = {re.sub(r"num\d", "#", question): question for question in patterns}
    for problem in load_data(folder / "train.jsonl"):
        shape = re.sub(r"\d+(?:\.\d+)?", "#", problem.question)
        assert shape in shapes, problem
        used[shape] += 1
        assert set(re.findall(r"\d+(?:\.\d+)?", problem.equation)) <= set(
            re.findall(r"\d+(?:\.\d+)?", problem.question)
        )
    for shape, question in shapes.items():
        assert used[shape] in (8 * patterns[question], 9 * patterns[question]) or patterns[question] > 1


def test_the_four_classes_of_numbers_are_the_papers(made):
    config, folder, _ = made
    found = {"small": [], "large": [], "1dp": [], "2dp": []}
    for problem in load_data(folder / "train.jsonl"):
        texts = re.findall(r"\d+(?:\.\d+)?", problem.equation)
        places = {len(text.partition(".")[2]) for text in texts}
        assert len(places) == 1, problem
        values = [Decimal(text) for text in texts]
        name = f"{places.pop()}dp"
        found[("small" if max(values) < 1000 else "large") if name == "0dp" else name].append(values)
    assert {name: len(rows) for name, rows in found.items()} == dict.fromkeys(found, 500)
    end = {"paper": 100_000, "script": 999_999}[config.large]
    for name, low, high in (("small", 1, 999), ("large", 1000, end), ("1dp", 0, 1000), ("2dp", 0, 1000)):
        numbers = [value for row in found[name] for value in row]
        assert low <= min(numbers) and high * Decimal("0.9") < max(numbers) <= high
    for name in ("1dp", "2dp"):
        numbers = [value for row in found[name] for value in row]
        for power in range(4):
            assert sum(value < 10**power for value in numbers) > len(numbers) * (power + 1) / 4 * 0.7


def test_what_binary_floats_would_keep():
    """What docs/data.md says of the published script: it keeps mostly endless quotients and loses a quarter of sums."""
    draw = lambda numbers: fermat_templates._draw(fermat_templates._stream(3), 200_000, numbers).reshape(-1, 2).tolist()  # noqa: E731
    _, large, _, hundredths = number_classes("script")
    kept = [Fraction(a, b) for a, b in draw(large) if len(str(a / b)) <= 15]
    endless = [value for value in kept if 10**20 % value.denominator]
    assert len(kept) > 100 and len(endless) / len(kept) > 0.8
    lost = [len(str(a / 100 + b / 100)) > 15 for a, b in draw(hundredths)]
    assert 0.2 < sum(lost) / len(lost) < 0.3


@pytest.mark.parametrize("numbers", number_classes("script"), ids=lambda numbers: numbers.name)
def test_draws_reach_every_number_evenly(numbers):
    drawn = fermat_templates._draw(fermat_templates._stream(7), 200_000, numbers)
    scale = 10**numbers.decimals
    assert drawn.min() >= numbers.low and drawn.max() <= numbers.high * scale
    if not numbers.decimals:
        expected = (numbers.low + numbers.high) / 2
        assert abs(drawn.mean() / expected - 1) < 0.01
        return
    assert drawn.min() == 0 and drawn.max() > 999 * scale
    assert abs(drawn.mean() / scale / (1111 / 8) - 1) < 0.02
    # Below 1 is what rounds to less: all but half a step of the first span, a tenth of that of the second, ..
    assert abs((drawn < scale).mean() - (1 - 1 / (2 * scale)) * 1.111 / 4) < 0.005


def test_the_way_from_bits_to_numbers_is_fixed():
    """The first draws of each class, so that a change of numpy or of ours shows here and not only in a checksum."""
    first = [
        fermat_templates._draw(fermat_templates._stream(42), 6, numbers).tolist()
        for numbers in number_classes("script")
    ]
    assert first == FIRST_DRAWS


FIRST_DRAWS = [
    [90, 774, 654, 439, 433, 858],
    [90161, 774182, 654916, 439439, 433582, 858739],
    [1, 77, 65, 44, 4, 859],
    [9, 774, 655, 439, 43, 8586],
]


@pytest.mark.parametrize(
    ("settings", "says"),
    [({"size": 0, "seed": -1}, "size: .*found 0; seed: .*found -1"), ({"dev_size": 1.5}, "dev_size: .*1.5"), ({"large": "huge"}, "paper, script"),
     ({"answers": "long"}, "short, rounded")],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused_together(settings, says):
    with pytest.raises(ConfigError, match=says):
        FermatConfig(**settings)


def test_the_smallest_sets():
    rows = generate_fermat(FermatConfig(size=1, dev_size=0))
    assert len(rows["train"]) == 1 and rows["dev"] == []


def test_a_changed_generated_file_is_reported(tmp_path):
    write_fermat(FermatConfig(size=20, dev_size=5), tmp_path)
    path = tmp_path / "train.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match="train.jsonl differs from the file that .*data.json describes"):
        load_data(path)
    with pytest.raises(DataError, match="generate it again"):
        data_sources(path)
    assert len(load_data(tmp_path / "dev.jsonl")) == 5


def test_a_killed_write_leaves_the_old_file_or_none(tmp_path):
    """The second file is never finished: the first is whole, and the record, which names none yet, is all there is."""
    code = (
        "import os, sys; from placevalue.common import files; from placevalue.data import *;"
        "real = os.fsync; calls = [];"
        "os.fsync = lambda handle: (calls.append(1), os._exit(9) if len(calls) == 3 else real(handle));"
        "write_fermat(FermatConfig(size=20, dev_size=5, seed=int(sys.argv[2])), sys.argv[1])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path), "1"], check=False)
    assert done.returncode == 9
    named = sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("."))
    assert named == ["data.json", "train.jsonl"] and len(load_data(tmp_path / "train.jsonl")) == 20
    write_fermat(FermatConfig(size=20, dev_size=5), tmp_path)
    assert len(load_data(tmp_path / "train.jsonl")) == 20


# The command line


def test_data_list_counts_and_licences(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["data", "list"]) == 0
    shown = capsys.readouterr().out
    for name, corpus in CORPORA.items():
        assert corpus_licence(name) in shown
        assert all(
            re.search(rf"^  {re.escape(name)}:{re.escape(part)} +\S+ problems$", shown, re.MULTILINE)
            for part in corpus.parts
        )
    assert "1,380 problems" in shown and shown.count("1,111 problems") == 19


def test_data_show(capsys):
    assert main(["data", "show", "mawps:test", "--rows", "2"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("\nquestion  ") == 2 and "500 problems" in shown and "id        mawps:1016\n" in shown
    assert main(["data", "show", "mawps:tset"]) == 1
    assert "mawps:train" in capsys.readouterr().err


def test_data_fermat_writes_what_it_says(tmp_path, capsys):
    flags = ["--size", "40", "--dev-size", "4", "--test-size", "6", "--seed", "7", "--large", "script"]
    flags += ["--answers", "rounded"]
    assert main(["data", "fermat", *flags, "--out", str(tmp_path / "new" / "set")]) == 0
    record = json.loads((tmp_path / "new" / "set" / "data.json").read_text())
    assert record["config"] == {
        "size": 40, "dev_size": 4, "test_size": 6, "seed": 7, "large": "script", "answers": "rounded",
        "templates": "shared",
    }  # fmt: skip
    assert record["sources"] == ["fermat-templates"]
    assert "40 problems" in capsys.readouterr().out
    assert main(["data", "show", str(tmp_path / "new" / "set" / "train.jsonl"), "--rows", "1"]) == 0
    assert "fermat-templates:train:0" in capsys.readouterr().out
    assert main(["data", "fermat", "--size", "40", "--templates", "held-out", "--out", str(tmp_path / "apart")]) == 0
    assert data_sources(tmp_path / "apart" / "test.jsonl") == ("fermat-held-out",)
    assert main(["data", "fermat", "--size", "0", "--out", str(tmp_path / "x")]) == 1
    assert not (tmp_path / "x").exists()
