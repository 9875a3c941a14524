"""The one kind of error a reader can cause, and can mend."""


class HeadworkError(Exception):
    """Bad input: the message says what was given, what was expected and what to do."""


class ShapeError(HeadworkError):
    """Two steps that do not fit together."""


class SheetError(HeadworkError):
    """A sheet that cannot be read: the message names the file and the key."""
