"""Moodle with STACK: a problem is one question, with all variants in it and a response tree for every answer.

A matrix is typed as text ("1 2; 3 4") into an input of type string, which is valid whatever it holds: a tree that rests
on an invalid input is not run, so one unreadable answer would take all later ones with it. As text a number also keeps
its places. The marking is `stack.mac`; numbers and formulas come from `stack_program`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from importlib import resources

from headwork.errors import HeadworkError
from headwork.marking.graders.family import Family
from headwork.marking.graders.fields import FORM, Field, consistent_with, fields
from headwork.marking.graders.files import Files, moodle_html, moodle_quiz, moodle_text
from headwork.marking.graders.paper import Piece, html, name_html, paper
from headwork.marking.graders.stack_program import GUARD, Answer, Program
from headwork.marking.report import VERDICTS

VERSION = "2024072500"  # of STACK, 4.7: later ones read its XML


def package(family: Family, name: str) -> Files:
    """Moodle XML: a category with a question for every problem."""
    markers = [family.marker(sheet) for sheet in family.texts]
    papers = [list(paper(marker)) for marker in markers]
    asked, several, start = fields(markers[0]), len(markers[0].problems) > 1, 0
    questions: list[str] = []
    for number, problem in enumerate(markers[0].sheet.problems, 1):
        stop = start + 1 + len(problem.parts)
        labels = [f"{number}.{part.label}" if several else part.label for part in problem.parts]
        own = [field for field in asked if field.entries and field.part in labels]
        if own:
            program = Program([marker.problems[number - 1] for marker in markers], own)
            title = f"{family.title} ({name}{f', {number}' if several else ''})"
            questions += _question(title, program, [pages[start:stop] for pages in papers])
        start = stop
    if not questions:
        raise HeadworkError("the sheet asks for no numbers, and STACK is sent nothing else; choose another grader")
    return moodle_quiz(name, questions)


def _question(title: str, program: Program, papers: Sequence[Sequence[Piece]]) -> Iterator[str]:
    library = (resources.files("headwork.marking.graders") / "stack.mac").read_text("utf-8")
    keys = [f"hw_key{a.number}: {_typed(a, f'hw_true[{a.step}]', program)};" for a in program.answers]
    tries = [f"hw_try{i}: {_typed(a, m.matrix, program)};" for i, (a, m, _) in enumerate(program.own_tests, 1)]
    grade = sum(answer.field.points for answer in program.answers)
    yield '<question type="stack">'
    yield moodle_text("name", escape(title))
    yield moodle_html("questiontext", "\n".join(_page(program, papers)))
    yield moodle_html("generalfeedback", "")
    yield f"<defaultgrade>{float(grade):.7f}</defaultgrade><penalty>0</penalty><hidden>0</hidden>"
    yield moodle_text("stackversion", VERSION)
    yield moodle_text("questionvariables", escape("\n".join([library, *program.lines, *keys, *tries])))
    yield moodle_html("specificfeedback", "")
    yield moodle_html("questionnote", "Variant {@hw_variant@}" if len(program.variants) > 1 else "")
    yield "<questionsimplify>1</questionsimplify><assumepositive>0</assumepositive><assumereal>0</assumereal>"
    yield moodle_html("prtcorrect", "Right.")
    yield moodle_html("prtpartiallycorrect", "Partly right.")
    yield moodle_html("prtincorrect", "Not right.")
    yield "<multiplicationsign>dot</multiplicationsign><sqrtsign>1</sqrtsign><complexno>i</complexno>"
    yield "<inversetrig>cos-1</inversetrig><matrixparens>[</matrixparens>"
    for answer in program.answers:
        yield _input(answer)
    for answer in program.answers:
        yield from _tree(answer, program)
    if program.rules.tolerance.rule != "exact":  # the key is typed in decimals
        yield from _tests(program)
    yield "</question>"


def _page(program: Program, papers: Sequence[Sequence[Piece]]) -> Iterator[str]:
    """What is read, variant by variant where they differ, and what is typed."""
    numbered = {answer.field: answer.number for answer in program.answers}
    for pieces in zip(*papers, strict=True):
        words = [_castext(html(piece.blocks)) for piece in pieces]
        if len(set(words)) == 1:
            yield words[0]
        else:
            yield "".join(f'[[if test="hw_variant={i}"]]{text}[[/if]]' for i, text in enumerate(words, 1))
        for field in pieces[0].fields:
            yield _to_fill_in(field, numbered.get(field))


def _to_fill_in(field: Field, number: int | None) -> str:
    if number is None:
        return f"<p>{name_html(field)}: on paper.</p>"
    return f"<p>{name_html(field)} = [[input:ans{number}]]</p>\n[[validation:ans{number}]] [[feedback:prt{number}]]"


def _castext(words: str) -> str:
    """Text in which nothing looks like STACK's own."""
    return words.replace("[[", "[ [").replace("{@", "{ @").replace("{#", "{ #")


def _typed(answer: Answer, matrix: str, program: Program) -> str:
    return f"hw_text({answer.part_of(matrix)},{program.places + GUARD})"


def _input(answer: Answer) -> str:
    width = min(60, 8 * answer.size)
    return (
        f"<input><name>ans{answer.number}</name><type>string</type><tans>hw_key{answer.number}</tans>"
        f"<boxsize>{width}</boxsize><strictsyntax>1</strictsyntax><insertstars>0</insertstars>"
        f"<syntaxhint>1 2; 3 4</syntaxhint><syntaxattribute>1</syntaxattribute><forbidwords></forbidwords>"
        "<allowwords></allowwords><forbidfloat>0</forbidfloat><requirelowestterms>0</requirelowestterms>"
        "<checkanswertype>0</checkanswertype><mustverify>0</mustverify><showvalidation>0</showvalidation>"
        "<options>allowempty</options></input>"
    )


@dataclass(frozen=True)
class Node:
    """A test whether a number is another, what it adds to the score where it is, and where it leads."""

    sans: str
    tans: int
    note: str
    says: str = ""
    adds: Fraction = Fraction(0)
    stops: bool = True
    else_says: str = ""


def nodes(answer: Answer, program: Program) -> Iterator[Node]:
    """Blank and unreadable answers end early. The credit is a whole number of units, added up bit by bit, because a
    node's score is a number in every version of STACK."""
    units = answer.size * program.rules.penalty.denominator
    shape = f"{answer.rows}×{answer.columns}"
    yield Node("hw_kind", 0, "blank", "Nothing is typed here yet.")
    yield Node("hw_kind", -1, "malformed", f"This {VERDICTS['malformed']}: a {shape} matrix is asked for. {FORM}.")
    for bit in range(units.bit_length()):
        yield Node(f"hw_bit{bit}", 1, f"bit{bit}", adds=Fraction(2**bit, units), stops=False)
    yield Node("hw_kind", 1, "right", "Right.")
    follows = VERDICTS["follows"]
    yield Node("hw_kind", 2, "follows", f"{follows[0].upper()}{follows[1:]}.", else_says="Wrong in {@hw_where@}.")
    for number, mistaken in enumerate(answer.mistakes, 1):
        yield Node(f"hw_is{number}", 1, mistaken.tag, _castext(escape(consistent_with(mistaken.tag))))


def _tree(answer: Answer, program: Program) -> Iterator[str]:
    typed = ",".join(f"ans{i}" for i in range(1, answer.number + 1))
    units = answer.size * program.rules.penalty.denominator
    first = program.first.problem.notation.first_index
    variables = [
        f"hw_r: hw_walk([{typed}]);",
        "hw_kind: hw_r[1];",
        f"hw_units: {program.rules.penalty.denominator}*hw_r[2];",
        *(f"hw_bit{bit}: hw_bit(hw_units,{bit});" for bit in range(units.bit_length())),
        f"hw_where: map(lambda([hw_c],hw_c+{first - 1}),hw_r[3]);",
    ]
    for i, mistaken in enumerate(answer.mistakes, 1):
        variables.append(f"hw_is{i}: if hw_kind=3 then hw_like({answer.number},hw_r,{mistaken.matrix}) else 0;")
    yield f"<prt><name>prt{answer.number}</name><value>{float(answer.field.points):.7f}</value>"
    yield "<autosimplify>1</autosimplify><feedbackstyle>2</feedbackstyle>"
    yield moodle_text("feedbackvariables", escape("\n".join(variables)))
    every = list(nodes(answer, program))
    for number, node in enumerate(every):
        after = number + 1 if number + 1 < len(every) else -1
        yield _node(f"prt{answer.number}", number, node, after)
    yield "</prt>"


def _node(tree: str, number: int, node: Node, after: int) -> str:
    mode = "+" if node.adds else "=" if number < 2 else "+"
    return (
        f"<node><name>{number}</name><description>{node.note}</description><answertest>AlgEquiv</answertest>"
        f"<sans>{node.sans}</sans><tans>{node.tans}</tans><testoptions></testoptions><quiet>1</quiet>"
        f"<truescoremode>{mode}</truescoremode><truescore>{float(node.adds):.7f}</truescore><truepenalty></truepenalty>"
        f"<truenextnode>{-1 if node.stops else after}</truenextnode>"
        f"<trueanswernote>{tree}-{node.note}</trueanswernote>{moodle_html('truefeedback', node.says)}"
        f"<falsescoremode>+</falsescoremode><falsescore>0</falsescore><falsepenalty></falsepenalty>"
        f"<falsenextnode>{after}</falsenextnode><falseanswernote>{tree}-not-{node.note}</falseanswernote>"
        f"{moodle_html('falsefeedback', node.else_says)}</node>"
    )


def _tests(program: Program) -> Iterator[str]:
    """The question's own tests: everything right; then one mistake after the other, and nothing else typed."""
    right = {answer.number: (f"hw_key{answer.number}", Fraction(1), "right") for answer in program.answers}
    yield _test(1, "right", program, right)
    for number, (answer, mistaken, share) in enumerate(program.own_tests, 1):
        yield _test(number + 1, mistaken.tag, program, {answer.number: (f"hw_try{number}", share, mistaken.tag)})


def _test(number: int, about: str, program: Program, typed: dict[int, tuple[str, Fraction, str]]) -> str:
    inputs, expected = [], []
    for answer in program.answers:
        value, share, note = typed.get(answer.number, ('""', Fraction(0), "blank"))
        inputs.append(f"<testinput><name>ans{answer.number}</name><value>{value}</value></testinput>")
        expected.append(
            f"<expected><name>prt{answer.number}</name><expectedscore>{float(share):.7f}</expectedscore>"
            f"<expectedpenalty>0</expectedpenalty><expectedanswernote>prt{answer.number}-{note}</expectedanswernote></expected>"
        )
    head = f"<qtest><testcase>{number}</testcase><description>{about}</description>"
    return "\n".join([head, *inputs, *expected, "</qtest>"])
