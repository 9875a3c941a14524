"""The sheets of a class: one for everybody, or a folder with one for each student."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import islice, takewhile
from pathlib import Path

from headwork.errors import HeadworkError
from headwork.marking.mark import Marker
from headwork.sheets.load import parse_sheet, sheet_text
from headwork.sheets.sheet import Sheet
from headwork.sheets.shelf import built_in

FEW = 20  # sheets that stand for all


@dataclass(frozen=True)
class Family:
    """Sheets by name, as they are written."""

    texts: Mapping[str, str]

    def sheet(self, name: str) -> Sheet:
        return parse_sheet(self.texts[name], name)

    @cached_property
    def marker(self) -> Callable[[str], Marker]:
        """A sheet ready to be marked, by name; the last few are kept, for a package asks for each again and again."""
        return lru_cache(FEW)(lambda name: Marker(self.sheet(name)))

    @property
    def first(self) -> Marker:
        return self.marker(next(iter(self.texts)))

    @property
    def title(self) -> str:
        """The words with which the titles begin, of the first few as of all: nobody's number or name is among them."""
        first, *others = (self.sheet(name).title.split() for name in islice(self.texts, FEW))
        alike = takewhile(lambda words: len(set(words)) == 1, zip(first, *others, strict=False))
        words = " ".join(words[0] for words in alike) if others else " ".join(first)
        return words.removesuffix("sheet").rstrip(" ,:;(-–") or " ".join(first)

    def files(self, folder: str) -> dict[str, bytes]:
        """As they lie in a package; see `packed_family`."""
        return {f"{folder}/{name}.toml": text.encode() for name, text in self.texts.items()}

    def name_for(self, *known_as: str) -> str:
        """Whose sheet is whose: the one that is called after the student, else one drawn by the student's name.

        The same student gets the same sheet wherever the draw is made.

        >>> Family({"ada": "", "bob": ""}).name_for("Ada@example.org")
        'ada'
        """
        called = {name.casefold(): name for name in self.texts}
        for name in known_as:
            for spelled in (name.strip().casefold(), name.strip().casefold().partition("@")[0]):
                if spelled in called:
                    return called[spelled]
        first = known_as[0].strip().casefold() if known_as else ""
        return self.numbered(int.from_bytes(sha256(first.encode()).digest()[:8], "big"))

    def numbered(self, seed: int) -> str:
        """The sheet that a platform's random number stands for."""
        return list(self.texts)[seed % len(self.texts)]


def packed_family(folder: Path) -> Family:
    """The sheets in a package, which were checked when they were packed."""
    return Family({file.stem: file.read_text("utf-8") for file in sorted(folder.glob("*.toml"))})


def load_family(source: str | Path) -> Family:
    """A built-in sheet, a file, or a folder of files."""
    path = Path(source)
    folder = path.is_dir() and str(source) not in built_in()
    return _checked(folder_texts(path) if folder else {path.stem: sheet_text(source)})


def folder_texts(folder: Path) -> dict[str, str]:
    """The sheets of a folder by name, as they are written."""
    texts = {file.stem: sheet_text(file) for file in sorted(folder.glob("*.toml"))}
    if not texts:
        raise HeadworkError(f"{folder} holds no sheets; give a folder of .toml files, such as `headwork new` writes")
    return texts


def _checked(texts: Mapping[str, str]) -> Family:
    """Every sheet can be read, and all ask for the same answers: a package has one set of fields."""
    from headwork.marking.graders.fields import fields

    family = Family(texts)
    asked = {name: fields(family.marker(name)) for name in texts}
    first, *others = texts
    if not asked[first]:
        raise HeadworkError(
            f"{first} asks for nothing that can be marked; give it a part of kind value, shape or count"
        )
    for name in others:
        if asked[name] != asked[first]:
            raise HeadworkError(f"{name} does not ask for what {first} asks for; put sheets of one form into a folder")
    return family
