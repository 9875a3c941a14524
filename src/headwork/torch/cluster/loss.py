"""A rank that is lost, named: gloo says only that some line closed or that some time passed.

A rank whose line fails writes whom it misses into the group's store, then closes its other lines, so that all learn of
it at once and no rank waits for one that waits. Who was missed, and misses nobody himself, is the one that is lost.
"""

import json
import os
import time
from collections.abc import Callable
from datetime import timedelta
from threading import Thread
from typing import Any, Literal, NamedTuple, TypeVar

import torch
import torch.distributed as dist

from headwork.errors import HeadworkError

T = TypeVar("T")
KEY = "headwork/lost"
REFUSED = "headwork/refused"  # in the store of the default group, by global rank
AT_ONCE = 0.15  # seconds for the word of a rank that closed its lines on purpose: it is written before they close
PATIENCE = 0.5  # seconds for the store to answer
NEVER_SENT = 0x4EAC  # a tag that nothing is ever sent with
LONGEST = 30.0  # seconds for the word of a rank that waits as well, and will stop waiting a little later


class RankLost(HeadworkError):
    """A rank is gone, or does not answer; the group has to be started anew."""


class Word(NamedTuple):
    """What a rank says of another: it is gone, or silent; or of itself: it stopped. `text` is where, or why."""

    peer: int
    kind: Literal["gone", "silent", "stopped", "refused"]
    text: str


word_left: list[str] = []  # the key of the word that this process has left, if any


def blame(group: Any, peer: int, step: str, error: BaseException) -> RankLost:
    """Who is lost, from a line to `peer` that failed."""
    last = Word(peer, "silent" if "imed out" in str(error) else "gone", step)
    seconds: float = group._get_backend(torch.device("cpu")).options._timeout.total_seconds()
    heard = note(group, last)
    seen = {group.rank()}
    while last.peer not in seen and last.kind != "stopped":
        seen.add(last.peer)
        found = word_of(group, last.peer, AT_ONCE if last.kind == "gone" else min(seconds / 4, LONGEST))
        if found is None:
            refused = refusal_of(group, last.peer) if heard else ""
            if refused:
                last = Word(last.peer, "refused", refused)
                break
            # A store that was silent from the start had its keeper lost; one that falls silent now has seen it leave.
            home = keeper(group)
            last = last if heard or home is None or home in seen else Word(home, last.kind, step)
            break
        last = last if found.peer in seen and found.kind != "stopped" else found
    return RankLost(told(group, last, seconds))


def told(group: Any, word: Word, seconds: float) -> str:
    who = called(group, word.peer)
    if word.kind == "stopped":
        return f"{who} stopped in the middle of a call: {word.text}. Mend that, and start the group anew."
    if word.kind == "refused":
        return f"{who}: {word.text} The others have waited for it in vain: start the group anew."
    if word.kind == "gone":
        return f"{who} is gone: its lines closed at {word.text}. Its own output says why; start the group anew."
    return (
        f"{who} did not answer within {seconds:g} s at {word.text}: it hangs, is far behind, or does not make this "
        "call. The time is the group's timeout (timeout= of init_process_group or new_group)."
    )


def called(group: Any, rank: int) -> str:
    of_all = dist.get_global_rank(group, rank)
    return f"rank {rank} of {group.size()}" + ("" if of_all == rank else f" (global rank {of_all})")


def stop(group: Any, error: BaseException) -> None:
    """This rank ends in the middle of a call: the others are told why."""
    text = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")
    note(group, Word(group.rank(), "stopped", text))


def leave_word(error: BaseException) -> None:
    """This rank cannot say which group it should tell that its call is wrong: those who wait for it will ask why."""
    if dist.is_available() and dist.is_initialized():
        key = f"{REFUSED}/{dist.get_rank()}"
        asked(lambda: default_store().set(key, str(error)))
        word_left[:] = [key]


def take_back_word() -> None:
    """It makes a call after all."""
    if word_left:
        key = word_left.pop()
        asked(lambda: default_store().delete_key(key))


def refusal_of(group: Any, rank: int) -> str:
    key = f"{REFUSED}/{dist.get_global_rank(group, rank)}"
    if not asked(lambda: default_store().check([key])):
        return ""
    found = asked(lambda: default_store().get(key))
    return "" if found is None else bytes(found).decode()


def default_store() -> Any:
    return dist.group.WORLD.get_group_store()


def note(group: Any, word: Word) -> bool:
    """Whether the store has it: setting alone is not answered, not even where its keeper is stopped."""
    key = f"{KEY}/{group.rank()}"

    def written() -> bool:
        store = group.get_group_store()
        store.set(key, json.dumps(word))
        return bool(store.check([key]))

    return asked(written) is not None


def word_of(group: Any, rank: int, grace: float) -> Word | None:
    """What a rank has written, waiting a little for it; None where it has not, or nobody can say."""
    end, key = time.monotonic() + grace, f"{KEY}/{rank}"
    while True:
        there = asked(lambda: group.get_group_store().check([key]))
        if there:
            text = asked(lambda: group.get_group_store().get(key))
            return None if text is None else Word(*json.loads(text))
        if there is None or time.monotonic() > end:
            return None
        time.sleep(0.02)


def keeper(group: Any) -> int | None:
    """The rank in whose process the store lives, if it is one of the group's."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return None
    return next((r for r in range(group.size()) if dist.get_global_rank(group, r) == 0), None)


def asked(question: Callable[[], T]) -> T | None:
    """The store's answer, or None: one whose keeper is gone or stopped would be waited for much longer."""
    answers: list[T] = []

    def ask() -> None:
        try:
            answers.append(question())
        except RuntimeError:  # a store that is gone has no answer
            return

    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return answers[0] if answers else None


def close_lines(group: Any) -> None:
    """Close all of this rank's lines in the group: gloo does when it has waited in vain, be it a millisecond."""
    for peer in range(group.size()):
        if peer == group.rank():
            continue
        try:
            dist.irecv(torch.empty(1), group=group, group_src=peer, tag=NEVER_SENT).wait(timedelta(milliseconds=1))
        except RuntimeError as error:
            if "imed out" in str(error):
                break
    if keeper(group) == group.rank():
        time.sleep(2 * AT_ONCE)  # whoever learns of it now reads the store before this process leaves with it
