"""What the page asks and what it is told: JSON in, JSON out. A reader's mistake is an answer, never an exception.

A request carries the sheet as data. The last few pages are kept, so that an edit costs only what it changes; without
them the same request gives the same answer, only later. What an edit does not need is imported when it is asked for: a
browser that starts Python waits for every module.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from headwork.errors import HeadworkError
from headwork.sheets.load import LARGEST_FILE, parse_sheet
from headwork.sheets.shelf import built_in, summaries, text_of
from headwork.web.page import Page
from headwork.web.tables import CellErrors, Table, frame, renumbered, sheet_of, table_of

if TYPE_CHECKING:
    from headwork.marking.mark import Marker

LONGEST = 2_000_000  # characters of a request
KEPT = 4  # pages
_pages: list[Page] = []  # the one that was asked about last comes last
_markers: dict[str, Marker] = {}


def answer(request: str) -> str:
    """The reply to a request; what cannot be done is {"error": {"message": …}}, with the cells that are to blame."""
    try:
        return json.dumps(_reply(_read(request)), ensure_ascii=False)
    except CellErrors as error:
        return refusal(str(error), cells=error.cells)
    except HeadworkError as error:
        return refusal(str(error))
    except RecursionError:
        return refusal("this is nested too deep to be read")
    except (ArithmeticError, AttributeError, AssertionError, LookupError, TypeError, ValueError) as error:
        return refusal(f"this cannot be answered ({type(error).__name__}); open the sheet again")


def refusal(message: str, **more: Any) -> str:
    """The reply that says what cannot be done."""
    return json.dumps({"error": {"message": message, **more}}, ensure_ascii=False)


def _read(request: str) -> dict[str, Any]:
    if len(request) > LONGEST:
        raise HeadworkError(f"the request has {len(request):,} characters; at most {LONGEST:,} are read")
    try:
        found = json.loads(request)
    except ValueError:
        raise HeadworkError("the request is not JSON") from None
    if not isinstance(found, dict):
        raise HeadworkError("a request is an object with 'do'")
    return found


def _reply(request: dict[str, Any]) -> dict[str, Any]:
    do = request.get("do")
    if do not in ANSWERS:
        raise HeadworkError(f"'{str(do)[:40]}' cannot be done; there is {', '.join(ANSWERS)}")
    return ANSWERS[do](request)


def page_of(request: Mapping[str, Any]) -> Page:
    """The page of the sheet that a request carries: a kept one, or worked now."""
    table, exact = request.get("table"), bool(request.get("exact"))
    page = _taken(table, exact) or Page(table, exact=exact)  # type: ignore[arg-type]  # whatever it is, it is checked
    _keep(page)
    return page


def _taken(table: Any, exact: bool) -> Page | None:
    """The page that is kept of a table; it is kept no longer."""
    for place, page in enumerate(_pages):
        if page.exact == exact and page.table == table:
            return _pages.pop(place)
    return None


def _keep(page: Page) -> None:
    _pages.append(page)
    del _pages[:-KEPT]


def _open(request: Mapping[str, Any]) -> dict[str, Any]:
    """A built-in sheet by name, somebody's TOML, or the table of a link."""
    if "table" in request:
        return shown(request["table"], request)
    if "toml" in request:
        text = str(request["toml"])
        if len(text.encode()) > LARGEST_FILE:
            raise HeadworkError(f"the file has more than {LARGEST_FILE:,} bytes; a sheet has fewer")
        sheet = parse_sheet(text, "the file")
    else:
        name = str(request.get("name"))
        if name not in built_in():
            raise HeadworkError(f"there is no sheet '{name[:40]}'; there is {', '.join(built_in())}")
        sheet = parse_sheet(text_of(name), name)
    return shown(table_of(sheet), request)


def shown(table: Table, request: Mapping[str, Any]) -> dict[str, Any]:
    """A sheet and its whole page."""
    return {"table": table, "html": page_of({"table": table, "exact": request.get("exact")}).html()}


def _edit(request: Mapping[str, Any]) -> dict[str, Any]:
    """The same sheet with other numbers: what changes on the page of the sheet that it was; else everything."""
    table, was, exact = request["table"], request.get("was"), bool(request.get("exact"))
    if not isinstance(was, dict) or frame(table) != frame(was):
        return shown(table, request)
    page = page_of({"table": was, "exact": exact})
    sheet = renumbered(page.sheet, table, was)  # cells that are no numbers leave the page as it is
    _taken(was, exact)  # what an error leaves half done is not kept
    changed = page.edited(table, sheet)
    _keep(page)
    return changed


def _know(request: Mapping[str, Any]) -> dict[str, Any]:
    """Work a sheet that is on the page already, so that the next edit of it costs only what it changes."""
    page_of(request)
    return {}


def _paste(request: Mapping[str, Any]) -> dict[str, Any]:
    from headwork.web.pasting import pasted

    return {"rows": pasted(str(request["text"]))}


def _out(request: Mapping[str, Any]) -> dict[str, Any]:
    from headwork.web.out import taken

    return {"text": taken(page_of(request), str(request["form"]))}


def _another(request: Mapping[str, Any]) -> dict[str, Any]:
    from headwork.web.building import another

    return {"table": table_of(another(sheet_of(request["table"]), int(request["seed"])))}


def _new(request: Mapping[str, Any]) -> dict[str, Any]:
    from headwork.web.building import made

    return shown(table_of(made(request)), request)


def _entry(request: Mapping[str, Any]) -> dict[str, Any]:
    from headwork.web.pointing import entry

    return entry(page_of(request), int(request["block"]), int(request["row"]), int(request["column"]))


def _lay(request: Mapping[str, Any]) -> dict[str, Any]:
    from headwork.web.resizing import laid

    return shown(laid(request["table"], request["where"], request["rows"]), request)


def _resize(request: Mapping[str, Any]) -> dict[str, Any]:
    from headwork.web.resizing import resized

    table = resized(request["table"], request["where"], int(request["axis"]), request["add"] is True)
    return shown(table, request)


def _switch(request: Mapping[str, Any]) -> dict[str, Any]:
    from headwork.web.switching import switched

    table = switched(request["table"], int(request["problem"]), str(request["key"]), request["value"])
    return shown(table, request)


def _mistakes(request: Mapping[str, Any]) -> dict[str, Any]:
    from headwork.web.whatif import mistakes

    return {"mistakes": mistakes(page_of(request), int(request["problem"]))}


def _what_if(request: Mapping[str, Any]) -> dict[str, Any]:
    from headwork.web.whatif import what_if

    page, number = page_of(request), int(request["problem"])
    return {"html": what_if(page, number, str(request["tag"]), int(request.get("way", 0)))}


def _practice(request: Mapping[str, Any]) -> dict[str, Any]:
    from headwork.web.practice import practice

    return practice(page_of(request), bool(request.get("every")), int(request.get("worked", 0)))


def _mark(request: Mapping[str, Any]) -> dict[str, Any]:
    from headwork.marking.mark import Marker
    from headwork.web.practice import marked, practised

    every = bool(request.get("every"))
    key = json.dumps([request["table"], every], sort_keys=True)
    if key not in _markers:
        _markers.clear()  # one at a time is practised
        _markers[key] = Marker(practised(page_of(request), every))
    return marked(_markers[key], request["answers"])


def _hint(request: Mapping[str, Any]) -> dict[str, Any]:
    from headwork.web.hints import hint

    place = (int(request["row"]), int(request["column"]))
    page, number = page_of(request), int(request["problem"])
    return {"html": hint(page, number, str(request["part"]), str(request["name"]), place, int(request["level"]))}


ANSWERS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "sheets": lambda request: {"sheets": summaries()},
    "open": _open,
    "show": lambda request: shown(request["table"], request),
    "edit": _edit,
    "entry": _entry,
    "know": _know,
    "paste": _paste,
    "lay": _lay,
    "resize": _resize,
    "switch": _switch,
    "mistakes": _mistakes,
    "whatif": _what_if,
    "practice": _practice,
    "mark": _mark,
    "hint": _hint,
    "out": _out,
    "another": _another,
    "new": _new,
}
