"""One colour per role: told apart by everybody, readable on paper and on a dark page."""

import math
from itertools import combinations

import pytest

from headwork import solve
from headwork.notation import ROLES
from headwork.render.colours import FAMILIES, TERMINAL, THEMES, UNCOLOURED, family, shares, style_sheet
from headwork.render.save import rendered
from headwork.render.text import working_pieces

# What light is left of red, green and blue for somebody without one kind of cone (Machado, Oliveira, Fernandes 2009).
SIGHT = {
    "trichromat": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanope": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranope": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanope": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}
Triple = tuple[float, float, float]


def light(colour: str) -> Triple:
    """How much light of each kind a colour gives off."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares(colour))
    return red, green, blue


def seen(colour: str, sight: str) -> Triple:
    given = light(colour)
    red, green, blue = (min(1.0, max(0.0, sum(m * c for m, c in zip(row, given, strict=True)))) for row in SIGHT[sight])
    return red, green, blue


def lightness_and_hue(rgb: Triple) -> Triple:
    """CIE L*a*b*: equal distances look about equally far apart."""
    red, green, blue = rgb
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def contrast(one: str, other: str) -> float:
    """As WCAG 2 counts it."""
    dark, bright = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in map(light, (one, other)))
    return (bright + 0.05) / (dark + 0.05)


def over(colour: str, share: float, paper: str) -> str:
    """A colour laid thinly over another."""
    mixed = (share * c + (1 - share) * p for c, p in zip(shares(colour), shares(paper), strict=True))
    return "#" + "".join(f"{round(255 * c):02x}" for c in mixed)


def test_every_role_has_a_colour_or_is_said_to_have_none() -> None:
    assert {role for role in ROLES if not family(role)} == set(UNCOLOURED)
    assert {role for roles in FAMILIES.values() for role in roles} | set(UNCOLOURED) == set(ROLES)


def test_a_gradient_has_the_colour_of_what_it_is_the_gradient_of() -> None:
    assert [family(role) for role in ("d_Q", "next_W_K", "change_b_V", "d_X_from_Q")] == ["q", "k", "v", ""]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("sight", SIGHT)
def test_no_two_roles_look_alike(theme: str, sight: str) -> None:
    """Eighteen steps of L*a*b* apart and more, also from the ink of the text: a step of two is just noticed.

    Ten for the one in ten thousand who see no blue.
    """
    colours = {name: THEMES[theme][name] for name in (*FAMILIES, "ink")}
    places = {name: lightness_and_hue(seen(colour, sight)) for name, colour in colours.items()}
    near = {pair: math.dist(places[pair[0]], places[pair[1]]) for pair in combinations(places, 2)}
    assert min(near.values()) > (10 if sight == "tritanope" else 18), min(near, key=near.__getitem__)


@pytest.mark.parametrize("theme", THEMES)
def test_every_colour_of_text_can_be_read(theme: str) -> None:
    """4.5 to 1, on the page, on the panel, on white paper where the page is light, and on the tint of its own box."""
    colours = THEMES[theme]
    papers = [colours["paper"], colours["panel"], *(["#ffffff"] if theme == "light" else [])]
    for name in (*FAMILIES, "ink", "soft", "accent", "good", "bad", "unsure"):
        assert all(contrast(colours[name], paper) >= 4.5 for paper in papers), name
    for name in FAMILIES:
        for paper in papers:
            assert contrast(colours["ink"], over(colours[name], 0.14, paper)) >= 7, name
    assert all(contrast(colours["ink"], colours[lit]) >= 4.5 for lit in ("lit", "own"))


def test_the_style_sheet_names_every_colour_in_both_themes() -> None:
    sheet = style_sheet()
    for name in FAMILIES:
        assert sheet.count(f"--role-{name}: ") == 3  # the page's own, the system's dark, a dark one asked for
        assert f".role-{name} {{ color: var(--role-{name}); }}" in sheet


def test_one_colour_in_figure_equation_grid_and_arithmetic() -> None:
    """Q is blue wherever it stands on a page: as a box, as a name, as a matrix, as a factor in a sum."""
    working = solve("two-heads")
    page = rendered(working, ".html")
    figure, equations = page[page.index("<svg") : page.index("</svg>")], page[: page.index('id="how"')]
    arithmetic = page[page.index('id="how"') :]
    for name in FAMILIES:
        assert f"var(--role-{name}, " in figure
        assert f'<mrow class="role-{name}">' in equations
        assert f'class="grid role-{name}"' in equations
    assert all(f'<mrow class=\\"role-{name}\\"><mn>' in arithmetic for name in ("q", "k", "v", "weights", "output"))
    printed = rendered(working, ".typ")
    assert all(f"role{name}(attach(" in printed and f"role{name}(mat(" in printed for name in FAMILIES)


def test_a_terminal_has_the_same_five() -> None:
    assert set(TERMINAL) == set(FAMILIES)
    assert len(set(TERMINAL.values())) == len(FAMILIES)
    shown = {
        piece.lines[0].split()[0]: piece.colour for piece in working_pieces(solve("two-heads"), 100) if piece.colour
    }
    assert (shown["Q_1"], shown["K_2"], shown["V_1"], shown["scores_1"], shown["M"]) == (
        "q",
        "k",
        "v",
        "weights",
        "output",
    )
