"""A class in one go: a sheet for everybody, marked on their own, on one core or several."""

import errno
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from fractions import Fraction
from multiprocessing import Pipe, active_children
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from headwork.cli import app
from headwork.errors import HeadworkError
from headwork.marking.class_marker import ClassMarker, ClassOf, Override, load_class, settled
from headwork.marking.mark import Marker
from headwork.marking.one_file import Answers
from headwork.marking.pool import AT_ONCE, WAITING, Colleague, Group, marked
from headwork.marking.roster import read_points, read_roster
from headwork.sheets.load import load, sheet_text

ROSTER = "id,name\nada,Ada L.\nbob,\ncy,Cy\n"


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, HeadworkError):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("class")
    (made / "students.csv").write_text(ROSTER)
    run("new", "--roster", made / "students.csv", "--points", "a=2, c=1/2", "--output", made / "class")
    return made / "class"


def answers_for(sheet: Path, student: str) -> str:
    """Everything right in part a, and nothing else."""
    marker = Marker(load(sheet))
    truth = marker.problems[0].truths["a"]
    rows = {q.name: truth.near[q.found.step] for q in truth.asked}
    lines = [f"{name} = {[[str(int(x)) for x in row] for row in matrix]}" for name, matrix in rows.items()]
    return "\n".join([f'student = "{student}"', "[a]", *lines, ""])


def test_everybody_gets_a_sheet_and_a_paper_and_there_is_one_key(folder: Path) -> None:
    sheets = {name: load(folder / f"{name}.toml") for name in ("ada", "bob", "cy")}
    assert len({str(sheet.problems[0].given) for sheet in sheets.values()}) == 3
    paper = (folder / "papers" / "ada.html").read_text("utf-8")
    assert "sheet ada: Ada L." in paper
    assert [paper.count(f"({points})") for points in ("2 points", "1 point", "1/2 points")] == [1, 2, 1]
    key = (folder / "key.html").read_text("utf-8")
    assert all(sheet.title in key for sheet in sheets.values())
    assert Marker(sheets["bob"]).mark(Answers("")).max_score == 4.5


def test_the_same_list_gives_the_same_sheets_in_any_order(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("student\nbob\n")
    run("new", "--roster", tmp_path / "other.csv", "--points", "a=2, c=1/2", "--output", tmp_path / "class")
    assert (tmp_path / "class" / "bob.toml").read_text() == (folder / "bob.toml").read_text()


def test_everybody_is_marked_on_their_own_sheet(folder: Path, tmp_path: Path) -> None:
    for name, called in (("ada", "Ada L."), ("bob", "BOB@example.org"), ("cy", "cy")):
        (tmp_path / f"{name}.toml").write_text(answers_for(folder / f"{name}.toml", called))
    (tmp_path / "dan.toml").write_text('student = "Dan"\n')
    table = run("mark", folder, *sorted(tmp_path.glob("*.toml")), "--format", "csv").output.splitlines()
    assert [line.split(",")[:2] for line in table[1:4]] == [["Ada L.", "2"], ["BOB@example.org", "2"], ["cy", "2"]]
    assert "'Dan' is not on the roster.csv of this class" in table[4]
    (tmp_path / "ada.toml").write_text(answers_for(folder / "bob.toml", "ada"))
    assert run("mark", folder, tmp_path / "ada.toml", "--format", "csv").output.splitlines()[1].split(",")[1] != "2"


def test_nobody_finds_another_students_name_on_a_page(folder: Path, tmp_path: Path) -> None:
    """A page has the title of one's own sheet, the class's page that of all; names of the list stand beside the ids."""
    for name in ("bob", "cy"):
        (tmp_path / f"{name}.toml").write_text(answers_for(folder / f"{name}.toml", name))
    run("mark", folder, tmp_path / "bob.toml", tmp_path / "cy.toml", "--pages", tmp_path / "back")
    pages = {name: (tmp_path / "back" / f"{name}.html").read_text("utf-8") for name in ("bob", "cy", "class")}
    assert "sheet cy: Cy</h1>" in pages["cy"]
    assert all("Ada" not in pages[name] for name in ("bob", "cy"))
    assert "<h1>2 heads, 3 tokens</h1>" in pages["class"]
    assert "Cy (cy)" in pages["class"]
    assert "Handed in nothing: Ada L. (ada)." in pages["class"]
    (tmp_path / "book.csv").write_text("Name,Total\nCy,\nAda L.,\nbob,\n")
    options = ("--gradebook", tmp_path / "book.csv", "--column", "Total")
    filled = run("mark", folder, tmp_path / "bob.toml", tmp_path / "cy.toml", *options).output
    assert filled == "Name,Total\nCy,2\nAda L.,\nbob,2\n"


def test_who_hands_in_again_under_another_name_has_the_last_points(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "1.toml").write_text('student = "Ada L."\n')
    (tmp_path / "2.toml").write_text(answers_for(folder / "ada.toml", "ada"))
    (tmp_path / "book.csv").write_text("Name,Total\nAda L.,\n")
    options = ("--gradebook", tmp_path / "book.csv", "--column", "Total")
    filled = run("mark", folder, tmp_path / "1.toml", tmp_path / "2.toml", *options).output
    assert filled == "Name,Total\nAda L.,2\n"


def test_the_empty_answers_of_a_class_are_for_everybody(folder: Path) -> None:
    template = run("mark", folder, "--template").output
    assert template.startswith("# Answers to: 2 heads, 3 tokens\n")
    assert "Ada" not in template


@pytest.mark.parametrize("between", [";", "\t"])
def test_a_list_as_spreadsheets_write_it_where_decimals_have_commas(between: str, tmp_path: Path) -> None:
    """With a byte order mark, semicolons or tabs, a name with a comma in it, and empty lines at the end."""
    text = '\ufeffid;name;group\r\n007;"Byte, Bob";A\r\nada;Ada L.;B\r\n;;\r\n'
    (tmp_path / "list.csv").write_text(text.replace(";", between), encoding="utf-8", newline="")
    assert [(one.id, one.name) for one in read_roster(tmp_path / "list.csv")] == [
        ("007", "Byte, Bob"),
        ("ada", "Ada L."),
    ]


def test_a_name_that_two_have_is_nobodys(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("id,name\n7,Ada\n8,Ada\n")
    run("new", "--roster", tmp_path / "list.csv", "--tokens", 2, "--output", tmp_path / "class")
    (tmp_path / "ada.toml").write_text('student = "Ada"\n')
    assert "not alone with that name" in run("mark", tmp_path / "class", tmp_path / "ada.toml").output
    (tmp_path / "ada.toml").write_text(answers_for(tmp_path / "class" / "8.toml", "8"))
    assert (
        run("mark", tmp_path / "class", tmp_path / "ada.toml", "--format", "csv").output.splitlines()[1][:4] == "8,1,"
    )


def test_a_namesake_who_handed_in_nothing_gets_nobodys_points(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("id,name\n7,Ada\n8,ada\n")
    run("new", "--roster", tmp_path / "list.csv", "--tokens", 2, "--output", tmp_path / "class")
    (tmp_path / "8.toml").write_text(answers_for(tmp_path / "class" / "8.toml", "8"))
    (tmp_path / "book.csv").write_text("Student,SIS Login ID,Quiz\nAda,7,\nada,8,\n")
    options = ("--gradebook", tmp_path / "book.csv", "--column", "Quiz")
    filled = run("mark", tmp_path / "class", tmp_path / "8.toml", *options).output
    assert filled == "Student,SIS Login ID,Quiz\nAda,7,\nada,8,1\n"


def test_points_set_by_hand_are_never_for_two(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("id,name\n7,Ada\n8,ada\n")
    run("new", "--roster", tmp_path / "list.csv", "--tokens", 2, "--output", tmp_path / "class")
    for name in ("7", "8"):
        (tmp_path / f"{name}.toml").write_text(answers_for(tmp_path / "class" / f"{name}.toml", name))
    by_hand = tmp_path / "class" / "overrides.csv"
    by_hand.write_text("student,part,score\nAda,a,0\n")
    with pytest.raises(HeadworkError, match=r"line 2: there are Ada \(7\) and ada \(8\); set points under an id"):
        run("mark", tmp_path / "class", tmp_path / "7.toml")
    by_hand.write_text("student,part,score\n8,a,0\n")
    table = run("mark", tmp_path / "class", tmp_path / "7.toml", tmp_path / "8.toml", "--format", "csv").output
    assert [line.split(",")[1] for line in table.splitlines()[1:]] == ["1", "0"]


@pytest.mark.parametrize(("listed", "called"), [("=SUM(A1)", "=SUM(A1)"), ("Renée D’Arc", "Rene\u0301e D'Arc")])
def test_a_name_is_found_as_other_programs_write_it(tmp_path: Path, listed: str, called: str) -> None:
    """Tables keep names from being formulas; file systems take letters and accents apart."""
    (tmp_path / "list.csv").write_text(f"id,name\n7,{listed}\n", "utf-8")
    run("new", "--roster", tmp_path / "list.csv", "--tokens", 2, "--output", tmp_path / "class")
    answers = answers_for(tmp_path / "class" / "7.toml", called)
    (tmp_path / "answers.toml").write_text(answers, "utf-8")
    table = run("mark", tmp_path / "class", tmp_path / "answers.toml", "--format", "csv").output
    assert table.splitlines()[1].split(",")[1] == "1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name\nAda\n", "needs a first line with a column 'id'"),
        ("id\n../ada\n", "line 2: '../ada' cannot name a sheet"),
        ("id\nroster\n", "'roster' cannot name a sheet"),
        ("id\nada\nAda\n", "line 3: 'Ada' stands on the list twice"),
        ("id\n", "has no students"),
    ],
)
def test_lists_that_cannot_be(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(HeadworkError, match=message):
        read_roster(tmp_path / "list.csv")


def test_options_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(ROSTER)
    for arguments, message in (
        (("--points", "a=1"), "add --roster"),
        (("--roster", tmp_path / "list.csv", "--count", 3), "the class list says how many"),
        (("--roster", tmp_path / "list.csv", "--points", "z=1"), "names part 'z'; there is a, b, c, d"),
        (("--roster", tmp_path / "no.csv"), "cannot be read"),
    ):
        with pytest.raises(HeadworkError, match=message):
            run("new", "--output", tmp_path / "class", *arguments)
    with pytest.raises(HeadworkError, match="cannot be read; write a=3"):
        read_points("a:3")


def test_a_folder_that_is_no_class(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(HeadworkError, match="holds no sheets"):
        load_class(tmp_path)
    (tmp_path / "ada.toml").write_text((folder / "ada.toml").read_text())
    assert load_class(tmp_path).students is None
    (tmp_path / "roster.csv").write_text(ROSTER)
    with pytest.raises(HeadworkError, match="no sheet for 'bob'"):
        load_class(tmp_path)


def test_anyway_says_which_two_cannot_be_told_apart(tmp_path: Path) -> None:
    sizes = ("new", "--heads", 2, "--d-model", 4, "--output", tmp_path)
    with pytest.raises(HeadworkError, match="--anyway makes it all the same"):
        run(*sizes)
    result = run(*sizes, "--anyway")
    assert "scaled-by-d_k and scaled-by-sqrt-d_model predict the same answer" in result.stderr
    assert load(tmp_path / "sheet-1.toml").problems[0].heads == 2


TWO_HEADS = ClassOf({"two-heads": sheet_text("two-heads")})


def students(number: int) -> Iterator[Answers]:
    for i in range(number):
        matrix = "1 2 5 6; 3 4 7 8" if i % 2 else f"1 2 3 4; 5 6 7 {i}"
        yield Answers(f"s{i}", {"1.a": {"joined": matrix}})


def test_two_jobs_give_the_same_as_one(tmp_path: Path) -> None:
    rows = [f'{s.student},"{s.parts["1.a"]["joined"]}"' for s in students(60)]
    (tmp_path / "class.csv").write_text("\n".join(["student,1.a.joined", *rows, ""]))
    for name in ("html", "json", "csv"):
        one, two = (
            run("mark", "two-heads", tmp_path / "class.csv", "--format", name, "--jobs", jobs).stdout_bytes
            for jobs in (1, 2)
        )
        assert one == two
        assert b"s59" in one


def test_a_class_is_not_read_faster_than_it_is_marked() -> None:
    taken = 0

    def counted() -> Iterator[Answers]:
        nonlocal taken
        for student in students(10 * WAITING):
            taken += 1
            yield student

    marks = marked(ClassMarker(TWO_HEADS), counted(), 2, False)
    assert [next(marks).student for _ in range(AT_ONCE + 1)] == [f"s{i}" for i in range(AT_ONCE + 1)]
    assert taken <= 2 * WAITING + AT_ONCE + 1
    del marks  # which stops the processes


def test_an_error_comes_in_its_turn_whoever_marks() -> None:
    """The last of these is marked here, while the first are still with a process that starts."""
    names = [student.student for student in students(WAITING)]
    nowhere = {names[-1]: {"nowhere": Override(Fraction(1), "", "line 2")}}
    marks = marked(ClassMarker(replace(TWO_HEADS, overrides=nowhere)), students(WAITING), 2, False)
    assert [next(marks).student for _ in names[:-1]] == names[:-1]
    with pytest.raises(HeadworkError, match="there is no part 'nowhere'"):
        next(marks)


def _never_sees_interrupts(process: str) -> bool:
    masks = re.findall(r"Sig(?:Blk|Ign):\s*(\w+)", Path(f"/proc/{process}/status").read_text())
    return any(int(mask, 16) >> signal.SIGINT - 1 & 1 for mask in masks)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are found otherwise here")
@pytest.mark.parametrize("when", ["starting", "marking"])
def test_ctrl_c_ends_every_process_and_says_nothing(tmp_path: Path, when: str) -> None:
    rows = [f'{s.student},"{s.parts["1.a"]["joined"]}"' for s in students(20_000)]
    (tmp_path / "class.csv").write_text("\n".join(["student,1.a.joined", *rows, ""]))
    arguments = ["mark", "two-heads", "class.csv", "--format", "csv", "--jobs", "2"]
    desk = subprocess.Popen(
        [sys.executable, "-c", f"import sys; from headwork.cli import main; sys.argv[1:] = {arguments}; main()"],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # under nohup nobody would hear it
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert desk.stdout is not None
    others = Path(f"/proc/{desk.pid}/task/{desk.pid}/children")
    if when == "marking":
        desk.stdout.readline()
        assert all(map(_never_sees_interrupts, others.read_text().split()))
    else:
        while len(others.read_text().split()) < 2:  # one keeps count of what is shared, the other marks
            time.sleep(0.01)
    os.killpg(desk.pid, signal.SIGINT)  # to all of them, as a terminal sends it
    _, said = desk.communicate(timeout=60)  # which waits for whoever could still say something
    assert (desk.returncode, said) == (130, b"")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes are killed otherwise here")
def test_a_process_that_is_killed_is_an_error_at_once() -> None:
    marks = marked(ClassMarker(TWO_HEADS), students(100_000), 2, False)
    next(marks)
    victim = active_children()[0].pid
    assert victim is not None
    os.kill(victim, signal.SIGKILL)
    start = time.monotonic()
    with pytest.raises(HeadworkError, match="ended before its work was done"):
        list(marks)
    assert time.monotonic() - start < 2


def test_a_process_that_is_killed_within_a_message_is_the_same_error() -> None:
    ours, theirs = Pipe()
    colleague = Colleague(TWO_HEADS, date.today(), False, sent=deque([Group(1)]))
    colleague.pipe = ours
    os.write(theirs.fileno(), struct.pack("!i", 1000) + b"the first few bytes")
    theirs.close()
    with pytest.raises(HeadworkError, match="ended before its work was done"):
        colleague.collect()


def test_what_goes_wrong_in_reading_is_not_put_down_to_a_process() -> None:
    def broken() -> Iterator[Answers]:
        yield from students(3)
        raise EOFError("a zip that was cut off")

    with pytest.raises(EOFError, match="cut off"):
        list(marked(ClassMarker(TWO_HEADS), broken(), 2, False))


def test_processes_that_cannot_be_started_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: SpawnProcess) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(SpawnProcess, "start", start)
    with pytest.raises(HeadworkError, match=r"no more processes can be started \(Resource temp.*try fewer --jobs"):
        list(marked(ClassMarker(TWO_HEADS), students(3), 2, False))


def test_a_small_class_starts_few_processes() -> None:
    before = len(active_children())
    marks = marked(ClassMarker(TWO_HEADS), students(4 * AT_ONCE), 256, False)
    next(marks)
    assert len(active_children()) - before <= 2
    assert [mark.student for mark in marks] == [f"s{i}" for i in range(1, 4 * AT_ONCE)]


@pytest.mark.parametrize("piped", [True, False])
def test_the_main_program_is_not_run_again(tmp_path: Path, piped: bool) -> None:
    """Neither a script that does not ask whether it is the main program, nor one that comes down a pipe."""
    rows = [f'{s.student},"{s.parts["1.a"]["joined"]}"' for s in students(40)]
    (tmp_path / "class.csv").write_text("\n".join(["student,1.a.joined", *rows, ""]))
    arguments = ["mark", "two-heads", "class.csv", "--format", "csv", "--jobs", "2"]
    script = f"import sys; from headwork.cli import main; sys.argv[1:] = {arguments}; main()"
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "-" if piped else "script.py"],
        input=script if piped else "",
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 41


def test_what_is_sent_between_processes_is_data() -> None:
    mark = Marker(load("two-heads")).mark(next(students(1)))
    with_working, without = settled(mark, True), settled(mark, False)
    assert with_working == mark == without
    assert with_working.parts[0].answers[0].working() is not None
    assert without.parts[0].answers[0].working() is None
