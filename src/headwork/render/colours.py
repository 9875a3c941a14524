"""The colours of every page and picture, once: one for Q, K, V, weights and output, and what stands around them.

Each differs from the others and from the ink for readers who see no red or no green, is dark enough to be read on paper
and light enough to be read on a dark page. A colour never says anything that a name does not say too.
"""

from collections.abc import Mapping

from headwork.notation import AROUND

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "q": ("Q", "Q_before_bias", "Q_rotated", "W_Q", "b_Q"),
    "k": (
        *("K", "K_before_bias", "K_transposed", "K_rotated", "W_K", "b_K"),
        *("K_new", "K_past", "K_past_before_bias"),
    ),
    "v": ("V", "V_before_bias", "W_V", "b_V", "V_new", "V_past", "V_past_before_bias"),
    "weights": (  # a row for every token, a column for every key, and what is made of their rows
        *("scores", "scaled", "capped", "tanh", "tanh_squared", "lost", "biased", "masked", "maxima", "shifted"),
        *("exponentials", "sums", "drop", "correction", "block_sums", "kept_sums", "weights", "weighted", "row_term"),
        "centred",
    ),
    "output": (
        *("block_output", "kept_running", "running", "head_output", "joined", "output_before_bias", "output"),
        *("W_O", "b_O"),
    ),
}
UNCOLOURED = (
    *("X", "X_past", "X_positioned", "X_past_positioned", "positions", "positions_past", "positions_new"),
    *("cos", "sin", "cos_Q", "sin_Q"),
    *("context", "mask", "bias", "distance", "target", "active"),
    *(f"{role}_{i}" for i in (1, "past_1", 2) for role in AROUND),
)
_FAMILY = {role: family for family, roles in FAMILIES.items() for role in roles}
_BEFORE = ("d_", "change_", "next_")  # a gradient has the colour of what it is the gradient of

COLOURS: Mapping[str, tuple[str, str]] = {  # on a light page, on a dark one
    "q": ("#1b65e6", "#5e97ff"),
    "k": ("#b74d0e", "#ffb83d"),
    "v": ("#017066", "#25bfa6"),
    "weights": ("#5b1280", "#f0c6ff"),
    "output": ("#7d0a14", "#ff5c7f"),
    "ink": ("#1c1e21", "#e9e6df"),
    "paper": ("#fdfcf9", "#17181b"),
    "soft": ("#5b5f66", "#a9abb0"),
    "rule": ("#d9d5cb", "#3a3c42"),
    "panel": ("#ffffff", "#212328"),
    "lit": ("#ffe08a", "#6b5410"),
    "own": ("#9fd0ff", "#1f4f7d"),
    "accent": ("#1d5fae", "#8abaf0"),
    "good": ("#17692e", "#7fd494"),
    "bad": ("#a3231f", "#ff9d97"),
    "unsure": ("#6b5900", "#e0c65c"),
}
LIGHT, DARK = ({name: pair[i] for name, pair in COLOURS.items()} for i in (0, 1))
# A terminal's theme makes its own colours readable: these come nearest.
TERMINAL: Mapping[str, str] = {"q": "blue", "k": "yellow", "v": "cyan", "weights": "magenta", "output": "red"}
THEMES: Mapping[str, Mapping[str, str]] = {"light": LIGHT, "dark": DARK}
_VERDICTS = {"right": "good", "follows": "accent", "wrong": "bad", "blank": "unsure", "malformed": "unsure"}
VERDICTS: Mapping[str, str] = {verdict: LIGHT[colour] for verdict, colour in _VERDICTS.items()}


def family(role: str) -> str:
    """Which of the five colours a role has; nothing for the inputs and the mask, which stand in ink."""
    for before in _BEFORE:
        role = role.removeprefix(before)
    return _FAMILY.get(role.partition("_from_")[0], "")


def variable(colour: str) -> str:
    """What a style sheet calls it: --role-q, --ink."""
    return f"--role-{colour}" if colour in FAMILIES else f"--{colour}"


def shares(colour: str) -> tuple[float, float, float]:
    """Red, green and blue, from 0 to 1."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def style_sheet() -> str:
    """The colours as variables: those of the system's theme, or of the one that `data-theme` at the root names."""
    light, dark = (" ".join(f"{variable(name)}: {value};" for name, value in theme.items()) for theme in (LIGHT, DARK))
    roles = "\n".join(f".role-{name} {{ color: var(--role-{name}); }}" for name in FAMILIES)
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f':root[data-theme="light"] {{ color-scheme: light; }}\n'
        f'@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ {dark} }} }}\n'
        f'@media screen {{ :root[data-theme="dark"] {{ color-scheme: dark; {dark} }} }}\n'
        f"{roles}\n"
    )
