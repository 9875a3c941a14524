"""What can be taken along: the sheet as TOML, its page as Markdown or LaTeX, the figure."""

from headwork.errors import HeadworkError
from headwork.marking.template import template_toml
from headwork.render.pictures import working_svg
from headwork.render.save import rendered
from headwork.sheets.save import sheet_toml
from headwork.solving import solve
from headwork.web.page import Page

ENDINGS = {"toml": ".toml", "markdown": ".md", "latex": ".tex", "svg": ".svg"}


def taken(page: Page, form: str) -> str:
    """The file's text."""
    working = solve(page.sheet)  # an edited page keeps only what it shows
    if form == "toml":
        return sheet_toml(page.sheet)
    if form == "answers":
        return template_toml(page.sheet)
    if form == "svg":
        return working_svg(working)
    if form not in ENDINGS:
        raise HeadworkError(f"nothing is written as '{form[:40]}'; there is {', '.join(ENDINGS)}")
    return str(rendered(working, ENDINGS[form], exact=page.exact))
