"""The one kind of error a reader can cause, and can mend."""

from collections.abc import Iterable


class HeadworkError(Exception):
    """Bad input: the message says what was given, what was expected and what to do."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """ "; did you mean 'weights'?", or nothing where no known word is near. Capitals count for little.

    >>> did_you_mean("wieghts", ["scores", "weights"])
    "; did you mean 'weights'?"
    """
    from difflib import get_close_matches

    words = {each.casefold(): each for each in known}
    near = get_close_matches(word.casefold(), words, 1, 0.7)
    return f"; did you mean '{words[near[0]]}'?" if near else ""


class ShapeError(HeadworkError):
    """Two steps that do not fit together."""


class SheetError(HeadworkError):
    """A sheet that cannot be read: the message names the file and the key."""
