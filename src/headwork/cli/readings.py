"""The commands that read a configuration, or a sheet, in one way: `draw`, `shapes`, `count`, `prove`, `moments`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from headwork.cli import options
from headwork.cli.terminal import show, show_lines, width
from headwork.errors import HeadworkError


@options.with_sizes
def draw(
    context: typer.Context,
    sheet: options.MaybeSheet = None,
    output: Annotated[Path, typer.Option(help="The picture's file: .svg, .png or .pdf.")] = Path("block.svg"),
    formula: options.Formula = "multi_head",
    wide: Annotated[bool, typer.Option("--wide", help="Heads side by side instead of one below the other.")] = False,
    theme: Annotated[str, typer.Option(help="light or dark.")] = "light",
    **sizes: Any,
) -> None:
    """Draw the block as a picture. Boxes are operations, arrows are matrices with their shapes."""
    if sheet is not None:
        from headwork.render.pictures import asked_picture, save_diagram
        from headwork.solving import solve

        options.refuse_beside_sheet(context, "output", "wide", "theme")
        save_diagram(asked_picture(solve(sheet)), output, wide=wide, theme=theme)
        return
    from headwork import configure

    configure.diagram(formula, **options.sizes_given(sizes)).save(output, wide=wide, theme=theme)


@options.with_sizes
def shapes(
    context: typer.Context, sheet: options.MaybeSheet = None, formula: options.Formula = "multi_head", **sizes: Any
) -> None:
    """The shape of every step, in numbers or symbols."""
    if sheet is not None:
        _show_sheet(context, "shape")
        return
    from headwork import configure

    show_lines(configure.shapes(formula, **options.sizes_given(sizes)))


@options.with_sizes
def count(
    context: typer.Context,
    sheet: options.MaybeSheet = None,
    formula: options.Formula = "multi_head",
    convention: Annotated[str, typer.Option(help="by-hand (printed below the table) or flops.")] = "by-hand",
    item_bytes: Annotated[int, typer.Option(min=1, max=16, help="Bytes of one number.")] = 4,
    plot: options.PlotFile = None,
    **sizes: Any,
) -> None:
    """What every step costs: operations and bytes."""
    if sheet is not None:
        _show_sheet(context, "count")
        return
    if plot is not None:
        from headwork.render.plots import plot_counts

        options.refuse(context, ["tokens"], "a plot runs through the numbers of tokens")
        plot_counts(plot, formula, convention=convention, item_bytes=item_bytes, **options.sizes_given(sizes))
        return
    from headwork import configure

    show_lines(configure.counts(formula, convention=convention, item_bytes=item_bytes, **options.sizes_given(sizes)))


def prove(
    context: typer.Context,
    sheet: options.MaybeSheet = None,
    claim: Annotated[
        str,
        typer.Option(help="blocks, blockwise, entry (of Q·Kᵀ), row (of weights·V), shift or gradient (of softmax)."),
    ] = "blocks",
    left: Annotated[str, typer.Option(help="With --claim blocks: one formula …")] = "multi_head",
    right: Annotated[str, typer.Option(help="… and the one it is compared with.")] = "multi_head_blocks",
    heads: Annotated[int, typer.Option(min=1, max=16)] = 2,
    tokens: Annotated[int, typer.Option(min=1, max=8)] = 2,
    d_model: Annotated[int | None, typer.Option(min=1, max=64, help="2·heads unless given.")] = None,
    entries: Annotated[bool, typer.Option("--entries", help="Write the proof out, entry by entry.")] = False,
) -> None:
    """Prove that two formulas agree, or show where they differ."""
    if sheet is not None:
        _show_sheet(context, "prove", "entries", own_parts=True)
        return
    from headwork import claims
    from headwork.proofs import prove as compare

    pairs = {"entry": claims.entry_claim, "row": claims.row_claim}
    pairs |= {"shift": claims.shift_claim, "blockwise": claims.blockwise_claim}
    if claim in (*pairs, "gradient"):
        options.refuse(context, ["left", "right", "heads"], f"--claim {claim} is about one step; leave it out")
        if claim in ("shift", "gradient"):
            options.refuse(context, ["d_model"], "a softmax has as many columns as there are tokens; leave it out")
    if claim == "gradient":
        proof = claims.prove_softmax_gradient(1, tokens)
    elif claim in pairs:
        proof = compare(*pairs[claim](tokens, tokens, d_model or 2))
    elif claim == "blocks":
        proof = compare(left, right, heads=heads, tokens=tokens, d_model=d_model)
    else:
        raise HeadworkError(f"there is no claim '{claim}'; choose blocks, {', '.join(pairs)} or gradient")
    if not entries and claim != "blocks":
        proof = claims.in_names(proof, {"entry": "scores[i,j]", "row": "head_output[i]"}.get(claim, claim))
    elif not entries and {left, right} == {"multi_head", "multi_head_blocks"}:
        proof = claims.blocks_in_names(proof)
    typer.echo(str(proof))
    if not proof:
        raise typer.Exit(1)


def moments(
    context: typer.Context,
    sheet: options.MaybeSheet = None,
    formula: options.Formula = "scaled_dot_product",
    mean: Annotated[str | None, typer.Option(help="Mean of every drawn entry; μ unless given.")] = None,
    variance: Annotated[str | None, typer.Option(help="Variance of every drawn entry; σ² unless given.")] = None,
    d_k: options.SizeOption = "D",
    seed: Annotated[int, typer.Option(min=0, help="For the sampling.")] = 0,
    plot: options.PlotFile = None,
) -> None:
    """Why √d_k: mean and variance, derived and sampled."""
    if sheet is not None:
        _show_sheet(context, "moments", own_parts=True)
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

        options.refuse(context, ["formula", "d_k"], "a plot shows q·k for many widths, with and without √d_k")
        plot_moments(plot, 0.0 if mu is None else to_float(mu), 1.0 if var is None else to_float(var), seed=seed)
        return
    lines: list[Any] = [Derivation(derive(name, mu, var)) for name in ("mean", "variance", "scale")]
    lines.append(configure.moments(formula, mean=mu, variance=var, d_k=d_k))
    if var is None or sign(var) > 0:
        drawn = sample(0.0 if mu is None else to_float(mu), 1.0 if var is None else to_float(var), seed=seed)
        lines.append(Samples(drawn))
    else:
        options.refuse(context, ["seed"], "with variance 0 nothing is drawn")
    show_lines(*lines)


def _show_sheet(context: typer.Context, kind: str, *flags: str, own_parts: bool = False) -> None:
    """A sheet's problems read in one way: their own parts of that kind, or one part for all of their steps.

    `flags` are options that are keys of a part, and stand for the sheet's own where they are given.
    """
    options.refuse_beside_sheet(context, *flags)
    import dataclasses

    from headwork.render.text import working_pieces
    from headwork.sheets.backward import gradient_parts
    from headwork.sheets.load import load
    from headwork.sheets.sheet import Part
    from headwork.solving import solve as work

    loaded = load(sheet := context.params["sheet"])
    problems = []
    for problem in loaded.problems:
        if own_parts:
            parts = tuple(part for part in problem.parts if part.kind == kind)
        else:
            parts = (*gradient_parts(problem), Part(label="", kind=kind))  # the way back is part of the graph
        told: dict[str, Any] = {flag: True for flag in flags if context.params[flag]}
        parts = tuple(dataclasses.replace(part, **told) for part in parts)
        if parts:
            problems.append(dataclasses.replace(problem, parts=parts))
    if not problems:
        raise HeadworkError(f"the sheet '{sheet}' has no part of kind '{kind}'")
    working = work(dataclasses.replace(loaded, problems=tuple(problems)), part=None if own_parts else "")
    show(working_pieces(working, width()))
