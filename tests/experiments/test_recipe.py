"""Run configs: YAML, overrides, and errors that name every fault by its dotted path."""

import json
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placevalue.cli.main import main
from placevalue.common.errors import ConfigError
from placevalue.common.yaml_values import parse_yaml
from placevalue.data import load_data
from placevalue.experiments.recipe import Recipe, field_help, make_recipe, read_recipe, set_value, to_yaml
from zoo import build

SMALL = """
model: some/model
data: {train: mawps:train, dev: mawps:dev, test: ["mawps:test"]}
methods: [digits, agg-before]
seeds: [1, 2]
training: {learning_rate: 1e-5, epochs: 3}
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    return file


def test_a_recipe_and_its_runs(path):
    recipe = read_recipe(path)
    assert recipe.training.learning_rate == 1e-5 and recipe.training.weight_decay == 0.005
    assert recipe.methods == ("digits", "agg-before") and recipe.data.test == ("mawps:test",)
    run = recipe.run()
    assert (run.method, run.seed) == ("digits", 1)
    assert recipe.run("agg-before", 7).seed == 7
    assert "test" not in run.to_dict()["data"]


def test_overrides_reach_every_depth(path):
    changed = read_recipe(path, ["training.max_steps=20", "seeds=[5]", "model=other", "numbers.ignore='19\\d\\d'"])
    assert changed.training.max_steps == 20 and changed.seeds == (5,) and changed.model == "other"
    assert changed.numbers.ignore == "19\\d\\d"
    assert read_recipe(path, ["training.learning_rate=3E-04"]).training.learning_rate == 3e-4


def test_a_lambda_of_single_methods(path):
    recipe = read_recipe(path, ["methods=[digits, aux-soft]", "ce_weights={aux-soft: 0.8}"])
    assert [recipe.run(method).training.ce_weight for method in recipe.methods] == [0.6, 0.8]
    path.write_text(path.read_text() + "ce_weights: {aux-soft: 0.8}\n")
    assert read_recipe(path, ["training.ce_weight=0.5"]).run("aux-soft").training.ce_weight == 0.5


def test_a_loss_weight_of_single_methods(path):
    methods = "methods=[digits, ntl-was, del]"
    recipe = read_recipe(path, [methods, "loss_weights={ntl-was: 0.1}"])
    assert [recipe.run(method).training.loss_weight for method in recipe.methods] == [None, 0.1, None]
    path.write_text(path.read_text() + "loss_weights: {ntl-was: 0.1}\n")
    assert read_recipe(path, [methods, "training.loss_weight=0"]).run("ntl-was").training.loss_weight == 0


def test_new_recipes_read_numbers_as_people_write_them_and_records_as_they_were_read(path):
    assert (read_recipe(path).numbers.pattern, read_recipe(path).numbers.negatives) == ("extended", "opposite")
    record = read_recipe(path, recorded=True).numbers
    assert (record.pattern, record.negatives, record.new_rows) == ("paper", "ignore", "mean")
    path.write_text(path.read_text() + "numbers: {pattern: european}\n")
    assert read_recipe(path, recorded=True).numbers.pattern == "european"


def test_new_rows_by_their_former_name(path):
    assert read_recipe(path, ["numbers.markers=mean"]).numbers.new_rows == "mean"
    path.write_text(path.read_text() + "numbers: {markers: mean}\n")
    assert read_recipe(path).numbers.new_rows == read_recipe(path, recorded=True).numbers.new_rows == "mean"
    assert read_recipe(path, ["numbers.new_rows=drawn"]).numbers.new_rows == "drawn"
    path.write_text(path.read_text().replace("{markers: mean}", "{markers: mean, new_rows: drawn}"))
    with pytest.raises(ConfigError, match="numbers.markers is unknown"):
        read_recipe(path)


def test_several_kinds_of_text_to_ignore(path):
    recipe = read_recipe(path, ["numbers.ignore=[years, 'ID[0-9]+']"])
    assert recipe.numbers.ignore == ("years", "ID[0-9]+")
    assert make_recipe(json.loads(json.dumps(asdict(recipe)))) == recipe
    assert read_recipe(path, ["numbers.ignore=years"]).numbers.ignore == "years"


def test_what_is_printed_reads_back(path, tmp_path):
    recipe = read_recipe(path)
    again = tmp_path / "again.yaml"
    again.write_text(to_yaml(asdict(recipe)))
    assert read_recipe(again) == recipe


def test_all_faults_are_reported_together_by_their_path(path):
    wrong = ["training.epoch=3", "training.batch_size=many", "data.trian=x", "generation.precision=int4", "colour=red"]
    with pytest.raises(ConfigError) as error:
        read_recipe(path, wrong)
    for part in ("training.epoch is unknown", "training.batch_size: expected a whole number, found 'many'",
                 "data.trian is unknown", "generation.precision: expected one of float32", "colour is unknown"):  # fmt: skip
        assert part in str(error.value)


@pytest.mark.parametrize(
    "override, message",
    [
        ("training.batch_size=0", "training.batch_size=0: expected more than 0"),
        ("training.max_steps=0", "training.max_steps=0"),
        ("training.ce_weight=2", "training.ce_weight=2"),
        ("methods=[best]", "method 'best' is unknown"),
        ("methods=[]", "at least one"),
        ("seeds=[1, 2, 1]", "expected each of them once"),
        ("ce_weights={best: 0.5}", "ce_weights names best"),
        ("loss_weights={best: 0.5}", "loss_weights names best"),
        ("loss_weights={aux-soft: 0.5}", "loss_weights names aux-soft, which adds no loss to cross-entropy"),
        ("loss_weights={del: -0.5}", "loss_weights.del=-0.5: expected 0 or more"),
        ("training.loss_weight=-1", "training.loss_weight=-1"),
        ("model.name=3", "model is a value and has no keys"),
        ("nonsense", "expected key=value"),
        ("seeds=[", "not YAML"),
    ],
)
def test_values_that_make_no_sense(path, override, message):
    with pytest.raises(ConfigError, match=message.replace("[", r"\[")):
        read_recipe(path, [override])


def test_numbers_that_no_tokenizer_takes_are_reported_with_the_rest(path, tmp_path):
    wrong = ["numbers.pattern=papr", "numbers.ignore=[yers, '(a+)+b']", "training.epoch=3", "training.optimizer=adm"]
    with pytest.raises(ConfigError) as error:
        read_recipe(path, wrong)
    for part in ("numbers.pattern: the pattern 'papr'", "is paper meant?", "numbers.ignore: ignore='yers'", "is years meant?",
                 r"'(a+)+b' can match", "training.epoch is unknown", "training.optimizer='adm'"):  # fmt: skip
        assert part in str(error.value)
    record = tmp_path / "record.yaml"
    record.write_text(to_yaml(asdict(read_recipe(path)) | {"numbers": {"pattern": r"(\d+)+"}}))
    assert read_recipe(record, recorded=True).numbers.pattern == r"(\d+)+", "what older versions took is still read"


def test_choosing_by_dev_needs_dev(path):
    with pytest.raises(ConfigError, match="needs data.dev"):
        read_recipe(path, ["training.select=dev-loss", "data.dev=null"])


@pytest.mark.parametrize("override", ["data.dev=numeracy:final", "data.train=numeracy-small:final:add"])
def test_nothing_is_trained_on_or_chosen_by_a_final_part(path, override):
    with pytest.raises(ConfigError, match=f"{override}: the final part is for the last test"):
        read_recipe(path, [override])
    assert read_recipe(path, ["data.test=['numeracy:final']"]).data.test == ("numeracy:final",)


def test_files_that_are_no_recipe(tmp_path):
    with pytest.raises(ConfigError, match="does not exist: give the path of a YAML file"):
        read_recipe(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_text("a: [")
    with pytest.raises(ConfigError, match=r"bad\.yaml is not YAML"):
        read_recipe(tmp_path / "bad.yaml")
    (tmp_path / "list.yaml").write_text("- 1")
    with pytest.raises(ConfigError, match="expected keys and values"):
        read_recipe(tmp_path / "list.yaml")


def test_missing_keys():
    with pytest.raises(ConfigError, match=r"model is missing; data\.train is missing; methods is missing"):
        make_recipe({"data": {}})


def test_every_key_has_its_sentence():
    keys = dict(field_help(Recipe))
    assert keys["training.ce_weight"].startswith("The share of cross-entropy")

    def count(cls):
        hints = {each.name: each.type for each in fields(cls)}
        return sum(count(hint) if is_dataclass(hint) else 1 for hint in hints.values())

    assert len(keys) == count(Recipe)


SHIPPED = sorted((Path(__file__).parents[2] / "recipes").glob("*.yaml"))
LIKE = {"bart": "bart", "flan": "t5-flan", "smollm2": "llama", "quick": "t5", "numeracy": "t5"}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
class TestShipped:
    def test_it_names_data_that_is_there(self, path):
        recipe = read_recipe(path)
        assert recipe.baseline in ("untouched", recipe.methods[0])
        assert "digits" in recipe.methods and recipe.data.test
        for spec in (*recipe.data.test, recipe.data.dev):
            assert load_data(spec)

    def test_a_dry_run_prints_every_config(self, path, capsys):
        for method in read_recipe(path).methods:
            assert main(["train", str(path), "--dry-run", "--method", method, "--seed", "9", "--max-steps", "20"]) == 0
            printed = capsys.readouterr().out
            assert f"method: {method}" in printed and "seed: 9" in printed and "max_steps: 20" in printed

    def test_it_trains_a_small_model_of_its_kind(self, path, tmp_path, capsys):
        """On the recipe's own kind of data and settings, a few of its problems."""
        recipe = read_recipe(path)
        model, base = build(next(small for start, small in LIKE.items() if path.stem.startswith(start)))
        for part in (model, base):
            part.save_pretrained(tmp_path / "model")
        rows = [asdict(problem) for problem in load_data(recipe.data.dev)[:40]]
        (tmp_path / "few.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        given = [f"{key}={tmp_path / 'few.jsonl'}" for key in ("data.train", "data.dev")]
        given += [f"model={tmp_path / 'model'}", "training.checkpoint_every=2", "training.batch_size=4"]
        given += ["training.workers=0"]
        command = ["train", str(path), *given, "--max-steps", "2", "--out", str(tmp_path / "run")]
        assert main([*command, "--method", recipe.methods[-1]]) == 0
        assert "2 steps" in capsys.readouterr().out


KEYS = [key for key, _ in field_help(Recipe)]
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
scalars |= st.sampled_from(["digits", "aux-soft", "mawps:train", "last", "dev-loss", "[0-9]+", "1e-5", "float32"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | scalars, inner, max_size=3),
    max_leaves=5,
)
symbols = st.sampled_from(["model: m", "\n", " ", "- ", "[", "{", "}", ", ", ": ", "&a ", "*a", "!!python/name:os.system", "'", '"', "|", "1", "training", "<<", "? ", "#", "\t", "2020-01-01", "0x1f", "1_0", ".inf", ".nan", "~"])  # fmt: skip


def some_recipe(make, *arguments):
    """A recipe, or one ConfigError; what is made prints as YAML that makes the same again."""
    try:
        recipe = make(*arguments)
    except ConfigError:
        return
    assert make_recipe(parse_yaml(to_yaml(asdict(recipe)), "again")) == recipe


@settings(max_examples=300)
@given(
    changes=st.dictionaries(st.sampled_from([*KEYS, "training", "data", "generation.x", "more"]), values, max_size=4)
)
def test_any_values_make_a_recipe_or_one_error(changes):
    recipe = parse_yaml(SMALL, "small")
    for key, value in changes.items():
        try:
            set_value(recipe, key, value)
        except ConfigError:
            return
    some_recipe(make_recipe, recipe)


@given(content=st.binary(max_size=40) | st.lists(symbols).map(lambda parts: (SMALL + "".join(parts)).encode()))
def test_any_file_makes_a_recipe_or_one_error(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(content)
    some_recipe(read_recipe, path)


@given(
    keys=st.lists(st.sampled_from([*KEYS, "", ".", "data.", "..x"]) | st.text(max_size=4), min_size=1, max_size=3),
    value=st.text(max_size=8) | st.lists(symbols, max_size=4).map("".join),
)
def test_any_override_makes_a_recipe_or_one_error(tmp_path_factory, keys, value):
    path = tmp_path_factory.getbasetemp() / "small.yaml"
    path.write_text(SMALL)
    some_recipe(read_recipe, path, [f"{key}={value}" for key in keys])
