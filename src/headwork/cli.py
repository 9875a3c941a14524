"""The command line. Commands gather what was asked; readings do the work; one place reports what went wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwork.errors import HeadworkError
from headwork.marking import cli as marking
from headwork.marking.graders import cli as graders

if TYPE_CHECKING:
    from headwork.render.text import Piece

app = typer.Typer(
    help="Multi-head attention, worked: by hand, in the open, at full speed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

SheetName = Annotated[str, typer.Argument(metavar="SHEET", help="A built-in name (see `headwork sheets`) or a path.")]
MaybeSheet = Annotated[
    str | None, typer.Argument(metavar="[SHEET]", help="A built-in name or a path; without it the sizes below count.")
]
Formula = Annotated[
    str, typer.Option(help="dot_product, scaled_dot_product, single_head, multi_head, multi_head_blocks")
]
PlotFile = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Plot it into this file: .svg, .png or .pdf.")
]
SizeOption = Annotated[str | None, typer.Option(metavar="SIZE", help="A number, or a symbol such as n.")]


@app.command()
def sheets() -> None:
    """List the built-in sheets."""
    from headwork.sheets.shelf import summaries

    found = summaries()
    width = max(len(name) for name, _ in found)
    for name, summary in found:
        typer.echo(f"{name:<{width}}  {summary}")


@app.command()
def solve(
    sheet: SheetName,
    part: Annotated[str | None, typer.Option(help="Only the parts with this label.")] = None,
    places: Annotated[int | None, typer.Option(min=0, max=50, help="Decimals for numbers that are not exact.")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Closed forms instead of decimals.")] = False,
    entry: Annotated[str | None, typer.Option(help='The arithmetic of one entry, such as "scores_1[2,1]".')] = None,
    format: Annotated[str, typer.Option(help="text or json.")] = "text",
    output: Annotated[
        Path | None, typer.Option(help="A file whose ending chooses the form: .md .tex .pdf .html .ipynb .svg .png …")
    ] = None,
    blank: Annotated[bool, typer.Option("--blank", help="A question paper: nothing worked, room to write.")] = False,
    fade: Annotated[int | None, typer.Option(min=0, metavar="N", help="The first N steps worked, then blanks.")] = None,
    answers_only: Annotated[bool, typer.Option("--answers-only", help="The key: results without the way.")] = False,
) -> None:
    """Work a sheet, step by step."""
    from headwork.render.cli import adapted, save_page
    from headwork.solving import solve as work

    if format not in ("text", "json"):
        raise HeadworkError(f"there is no format '{format}'; choose text or json")
    with _patience("working the sheet"):
        working = adapted(work(sheet, part=part, places=places, entry=entry), blank, fade, answers_only)
        if output is not None and format == "text":
            save_page(working, output, exact)
            return
        if format == "json":
            from headwork.render.json import working_json

            _write(working_json(working), output)
            return
        from headwork.render.text import working_pieces

        page = list(working_pieces(working, _width(), exact=exact))
    _show(page)


@app.command()
def draw(
    sheet: MaybeSheet = None,
    output: Annotated[Path, typer.Option(help="The picture's file: .svg or .png.")] = Path("block.svg"),
    formula: Formula = "multi_head",
    batch: SizeOption = None,
    tokens: SizeOption = "n",
    keys: SizeOption = None,
    d_model: SizeOption = "d",
    heads: SizeOption = None,
    d_k: SizeOption = None,
    d_v: SizeOption = None,
    kv_heads: Annotated[int | None, typer.Option(help="Key and value heads, when fewer than heads.")] = None,
    mask: Annotated[bool, typer.Option("--mask", help="With a mask.")] = False,
    biases: Annotated[bool, typer.Option("--biases", help="With biases.")] = False,
) -> None:
    """Draw the block: boxes are operations, arrows are matrices with their shapes."""
    from headwork import configure
    from headwork.render.cli import save_sheet_picture

    if sheet is not None:
        save_sheet_picture(sheet, output)
        return
    sizes = _sizes(batch=batch, tokens=tokens, keys=keys, d_model=d_model, heads=heads, d_k=d_k, d_v=d_v)
    configure.diagram(formula, **sizes, kv_heads=kv_heads, mask=mask, biases=biases).save(output)


@app.command()
def shapes(
    sheet: MaybeSheet = None,
    formula: Formula = "multi_head",
    batch: SizeOption = None,
    tokens: SizeOption = "n",
    keys: SizeOption = None,
    d_model: SizeOption = "d",
    heads: SizeOption = None,
    d_k: SizeOption = None,
    d_v: SizeOption = None,
    kv_heads: Annotated[int | None, typer.Option(help="Key and value heads, when fewer than heads.")] = None,
    mask: Annotated[bool, typer.Option("--mask", help="With a mask.")] = False,
    biases: Annotated[bool, typer.Option("--biases", help="With biases.")] = False,
) -> None:
    """The shape of every step, in numbers or symbols."""
    from headwork import configure

    if sheet is not None:
        _show_sheet(sheet, "shape")
        return
    sizes = _sizes(batch=batch, tokens=tokens, keys=keys, d_model=d_model, heads=heads, d_k=d_k, d_v=d_v)
    _show_lines(configure.shapes(formula, **sizes, kv_heads=kv_heads, mask=mask, biases=biases))


@app.command()
def count(
    sheet: MaybeSheet = None,
    formula: Formula = "multi_head",
    batch: SizeOption = None,
    tokens: SizeOption = "n",
    keys: SizeOption = None,
    d_model: SizeOption = "d",
    heads: SizeOption = None,
    d_k: SizeOption = None,
    d_v: SizeOption = None,
    kv_heads: Annotated[int | None, typer.Option(help="Key and value heads, when fewer than heads.")] = None,
    mask: Annotated[bool, typer.Option("--mask", help="With a mask.")] = False,
    biases: Annotated[bool, typer.Option("--biases", help="With biases.")] = False,
    convention: Annotated[str, typer.Option(help="by-hand (printed below the table) or flops.")] = "by-hand",
    item_bytes: Annotated[int, typer.Option(min=1, max=16, help="Bytes of one number.")] = 4,
    plot: PlotFile = None,
) -> None:
    """What every step costs: operations and bytes."""
    from headwork import configure

    if sheet is not None:
        _not_for_a_sheet(plot)
        _show_sheet(sheet, "count")
        return
    sizes = _sizes(batch=batch, tokens=tokens, keys=keys, d_model=d_model, heads=heads, d_k=d_k, d_v=d_v)
    if plot is not None:
        from headwork.render.plots import plot_counts

        extra = {"kv_heads": kv_heads, "mask": mask, "biases": biases}
        plot_counts(plot, formula, convention=convention, item_bytes=item_bytes, **sizes, **extra)
        return
    line = configure.counts(
        formula, convention=convention, item_bytes=item_bytes, **sizes, kv_heads=kv_heads, mask=mask, biases=biases
    )
    _show_lines(line)


@app.command()
def prove(
    sheet: MaybeSheet = None,
    claim: Annotated[str, typer.Option(help="blocks, entry (of Q·Kᵀ) or row (of weights·V).")] = "blocks",
    left: Annotated[str, typer.Option(help="With --claim blocks: one formula …")] = "multi_head",
    right: Annotated[str, typer.Option(help="… and the one it is compared with.")] = "multi_head_blocks",
    heads: Annotated[int, typer.Option(min=1, max=16)] = 2,
    tokens: Annotated[int, typer.Option(min=1, max=8)] = 2,
    d_model: Annotated[int | None, typer.Option(min=1, max=64, help="2·heads unless given.")] = None,
) -> None:
    """Prove that two formulas agree, or show where they differ."""
    if sheet is not None:
        _show_sheet(sheet, "prove", own_parts=True)
        return
    from headwork.proofs import entry_claim, row_claim
    from headwork.proofs import prove as compare

    claims = {"entry": entry_claim, "row": row_claim}
    if claim in claims:
        proof = compare(*claims[claim](tokens, tokens, d_model or 2))
    elif claim == "blocks":
        proof = compare(left, right, heads=heads, tokens=tokens, d_model=d_model)
    else:
        raise HeadworkError(f"there is no claim '{claim}'; choose blocks, entry or row")
    typer.echo(str(proof))
    if not proof:
        raise typer.Exit(1)


@app.command()
def moments(
    sheet: MaybeSheet = None,
    formula: Formula = "scaled_dot_product",
    mean: Annotated[str | None, typer.Option(help="Mean of every drawn entry; μ unless given.")] = None,
    variance: Annotated[str | None, typer.Option(help="Variance of every drawn entry; σ² unless given.")] = None,
    d_k: SizeOption = "D",
    seed: Annotated[int, typer.Option(help="For the sampling.")] = 0,
    plot: PlotFile = None,
) -> None:
    """Why √d_k: mean and variance, derived and sampled."""
    if sheet is not None:
        _not_for_a_sheet(plot)
        _show_sheet(sheet, "moments", own_parts=True)
        return
    from headwork import configure
    from headwork.numbers.digits import to_float
    from headwork.numbers.enclosure import sign
    from headwork.numbers.parse import parse_number
    from headwork.why_scale import derive, sample
    from headwork.working import Derivation, Samples

    mu, var = (None if text is None else parse_number(text) for text in (mean, variance))
    if var is not None and sign(var) < 0:
        raise HeadworkError(f"--variance {variance} is negative; give 0 or more")
    if plot is not None:
        from headwork.render.plots import plot_moments

        plot_moments(plot, 0.0 if mu is None else to_float(mu), 1.0 if var is None else to_float(var), seed=seed)
        return
    lines: list[Any] = [Derivation(derive(name, mu, var)) for name in ("mean", "variance", "scale")]
    lines.append(configure.moments(formula, mean=mu, variance=var, d_k=d_k))
    if var is None or sign(var) > 0:
        drawn = sample(0.0 if mu is None else to_float(mu), 1.0 if var is None else to_float(var), seed=seed)
        lines.append(Samples(drawn))
    _show_lines(*lines)


@app.command()
def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Leave out the longest cases.")] = False,
    json: Annotated[Path | None, typer.Option(help="Keep the figures, for comparison across commits.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw ratios and growth, as .svg or .png.")] = None,
) -> None:
    """Time the engine beside torch, ONNX Runtime, JAX and NumPy."""
    from headwork.engine.bench import run

    run(quick=quick, json_path=json, plot=plot)


app.command()(graders.export)
app.command()(marking.inspect)
app.command()(marking.mark)
app.command()(marking.new)


def _not_for_a_sheet(plot: Path | None) -> None:
    if plot is not None:
        raise HeadworkError("--plot runs through many sizes, and a sheet has its own; leave the sheet out")


def _sizes(**sizes: str | None) -> dict[str, Any]:
    return {name: int(size) if size.isdecimal() else size for name, size in sizes.items() if size is not None}


def _show_sheet(sheet: str, kind: str, own_parts: bool = False) -> None:
    """A sheet's problems read in one way: their own parts of that kind, or one part for all of their steps."""
    import dataclasses

    from headwork.render.text import working_pieces
    from headwork.sheets.load import load
    from headwork.sheets.sheet import Part
    from headwork.solving import solve as work

    loaded = load(sheet)
    problems = []
    for problem in loaded.problems:
        parts = tuple(p for p in problem.parts if p.kind == kind) if own_parts else (Part(label="", kind=kind),)
        if parts:
            problems.append(dataclasses.replace(problem, parts=parts))
    if not problems:
        raise HeadworkError(f"the sheet '{sheet}' has no part of kind '{kind}'")
    working = work(dataclasses.replace(loaded, problems=tuple(problems)))
    _show(working_pieces(working, _width()))


def _show_lines(*lines: Any) -> None:
    from headwork.render.text import lines_pieces

    _show(lines_pieces(lines, _width()))


_COLOURS = {"title": "bold", "problem": "bold", "part": "bold cyan", "formula": "green", "note": "dim"}


def _show(page: Iterable[Piece]) -> None:
    """A page on the terminal, in colour where the terminal has it."""
    if not sys.stdout.isatty():
        typer.echo("\n".join(line for piece in page for line in piece.lines))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for piece in page:
        console.print(Text("\n".join(piece.lines), style=_COLOURS.get(piece.kind, "")))


def _width() -> int:
    from shutil import get_terminal_size

    from headwork.render.text import WIDTH

    return min(max(get_terminal_size().columns, 60), 160) if sys.stdout.isatty() else WIDTH


def _write(text: str, output: Path | None) -> None:
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, "utf-8")
    except OSError as error:
        raise HeadworkError(f"cannot write {output}: {error.strerror}; choose another --output") from None


class _patience:
    """A spinner on the terminal for work that takes longer than a moment."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.status: Any = None

    def __enter__(self) -> None:
        if sys.stderr.isatty():
            from threading import Timer

            self.timer = Timer(1.0, self._start)
            self.timer.daemon = True
            self.timer.start()

    def _start(self) -> None:
        from rich.console import Console

        self.status = Console(stderr=True).status(f"{self.what} …")
        self.status.start()

    def __exit__(self, *_: object) -> None:
        if sys.stderr.isatty():
            self.timer.cancel()
            if self.status is not None:
                self.status.stop()


def main() -> None:
    """Run the command line; a user's mistake is one line on standard error and exit code 2."""
    try:
        app()
    except HeadworkError as error:
        typer.secho(f"headwork: {error}", fg="red", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()  # the reader, such as `head`, has seen enough
        sys.exit(0)
