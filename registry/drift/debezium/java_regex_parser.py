"""Parses Java's regular expressions into the steps of a program.

Each step continues at the next one unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, Literal

MAX_STEPS: Final = 3_000

Takes = Callable[[str], bool]
Node = tuple[object, ...]


class PatternNotUnderstood(ValueError):
    """A pattern that isn't supported; the message names the part, for "not understood: …"."""


@dataclass(frozen=True)
class RegexStep:
    """One step: take a character, split, save a position, look ahead, or check the position."""

    kind: Literal["char", "split", "save", "look", "start", "finish", "end"]
    next: int = 0
    other: int = 0
    takes: Takes = field(default=lambda _: False, compare=False)
    inside: tuple[RegexStep, ...] = ()
    positive: bool = True


class Writer:
    """Compiles the nodes of a parsed pattern: char, seq, or, repeat, group, look, start, finish."""

    def __init__(self) -> None:
        self.steps: list[RegexStep] = []

    def add(self, step: RegexStep) -> int:
        """Add a step and return its number. Raises PatternNotUnderstood for more than MAX_STEPS."""
        if len(self.steps) >= MAX_STEPS:
            raise PatternNotUnderstood("a pattern whose expanded repetitions are too long")
        self.steps.append(replace(step, next=len(self.steps) + 1))
        return len(self.steps) - 1

    def write(self, node: Node) -> None:
        """Write the steps of a node and its inner nodes."""
        kind, *rest = node
        getattr(self, f"_{kind}")(*rest)

    def _char(self, takes: Takes) -> None:
        self.add(RegexStep("char", takes=takes))

    def _seq(self, parts: list[Node]) -> None:
        for part in parts:
            self.write(part)

    def _or(self, branches: list[Node]) -> None:
        leaving = []
        for branch in branches[:-1]:
            split = self.add(RegexStep("split"))
            self.write(branch)
            leaving.append(self.add(RegexStep("save", other=-1)))
            self.steps[split] = replace(self.steps[split], other=len(self.steps))
        self.write(branches[-1])
        for step in leaving:
            self.steps[step] = replace(self.steps[step], next=len(self.steps))

    def _group(self, inside: Node, number: int) -> None:
        self.add(RegexStep("save", other=2 * number))
        self.write(inside)
        self.add(RegexStep("save", other=2 * number + 1))

    def _look(self, inside: Node, positive: bool) -> None:
        writer = Writer()
        writer.write(inside)
        writer.add(RegexStep("end"))
        self.add(RegexStep("look", inside=tuple(writer.steps), positive=positive))

    def _start(self) -> None:
        self.add(RegexStep("start"))

    def _finish(self, before_newline: bool) -> None:
        self.add(RegexStep("finish", positive=before_newline))

    def _repeat(self, node: Node, low: int, high: int, greedy: bool) -> None:
        for _ in range(low):
            self.write(node)
        if high < 0:
            start = self.add(RegexStep("split"))
            self.write(node)
            self.steps[self.add(RegexStep("save", other=-1))] = RegexStep("save", next=start, other=-1)
            self._leave(start, greedy)
            return
        splits = []
        for _ in range(high - low):
            splits.append(self.add(RegexStep("split")))
            self.write(node)
        for split in splits:
            self._leave(split, greedy)

    def _leave(self, split: int, greedy: bool) -> None:
        """Let the split continue after the repetition; a reluctant one tries that first."""
        inside, out = split + 1, len(self.steps)
        first, second = (inside, out) if greedy else (out, inside)
        self.steps[split] = replace(self.steps[split], next=first, other=second)


MAX_PATTERN: Final = 2_000
MAX_DEPTH: Final = 50


def _among(chars: Iterable[str]) -> Takes:
    allowed = frozenset(chars)
    return lambda char: char in allowed


def _not(takes: Takes) -> Takes:
    return lambda char: not takes(char)


_DIGIT: Final = _among("0123456789")
_LOWER: Final = _among(map(chr, range(97, 123)))
_UPPER: Final = _among(map(chr, range(65, 91)))
_ALPHA: Final[Takes] = lambda char: _LOWER(char) or _UPPER(char)  # noqa: E731 - on one line, like its neighbours
_WORD: Final[Takes] = lambda char: _ALPHA(char) or _DIGIT(char) or char == "_"  # noqa: E731
_SPACE: Final = _among(" \t\n\x0b\f\r")
_ANY: Final = _not(_among("\n\r\x85\u2028\u2029"))
_PUNCT: Final = _among("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
#: the letter after a backslash → the characters it matches
_CLASSES: Final[dict[str, Takes]] = {
    "d": _DIGIT,
    "D": _not(_DIGIT),
    "w": _WORD,
    "W": _not(_WORD),
    "s": _SPACE,
    "S": _not(_SPACE),
}
_NAMED: Final[dict[str, Takes]] = {
    "Lower": _LOWER,
    "Upper": _UPPER,
    "Alpha": _ALPHA,
    "Digit": _DIGIT,
    "Alnum": lambda char: _ALPHA(char) or _DIGIT(char),
    "Punct": _PUNCT,
    "Space": _SPACE,
    "ASCII": lambda char: ord(char) < 128,
}
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\x07", "e": "\x1b"}


def compile_steps(text: str, *, ignore_case: bool) -> tuple[tuple[RegexStep, ...], dict[str, int], int]:
    """Return a pattern's steps, named groups and number of groups. Raises PatternNotUnderstood."""
    if len(text) > MAX_PATTERN:
        raise PatternNotUnderstood(f"a pattern of more than {MAX_PATTERN} characters")
    reader = _PatternParser(text, ignore_case)
    node = reader.alternatives(0)
    if not reader.done:
        raise PatternNotUnderstood(f"an unmatched ')' at character {reader.at + 1}")
    writer = Writer()
    writer.write(node)
    writer.add(RegexStep("end"))
    return tuple(writer.steps), reader.names, reader.groups


class _PatternParser:
    """Parses a pattern into nodes: char, seq, or, repeat, group, look, start, finish."""

    def __init__(self, text: str, ignore_case: bool) -> None:
        self.text = text
        self.at = 0
        self.ignore_case = ignore_case
        self.dot_all = False
        self.names: dict[str, int] = {}
        self.groups = 0
        self.looking = False

    @property
    def done(self) -> bool:
        return self.at >= len(self.text)

    def peek(self, length: int = 1) -> str:
        return self.text[self.at : self.at + length]

    def take(self, token: str) -> bool:
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def alternatives(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise PatternNotUnderstood("groups nested too deeply")
        branches = [self.sequence(depth)]
        while self.take("|"):
            branches.append(self.sequence(depth))
        return branches[0] if len(branches) == 1 else ("or", branches)

    def sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while not self.done and self.peek() not in "|)":
            if self.take("\\Q"):
                end = self.text.find("\\E", self.at)
                quoted = self.text[self.at : end if end >= 0 else len(self.text)]
                self.at = end + 2 if end >= 0 else len(self.text)
                letters: list[Node] = [self.char(_among(letter)) for letter in quoted]
                parts += letters[:-1]
                parts += [self.repeated(node) for node in letters[-1:]]
                continue
            parts.append(self.repeated(self.atom(depth)))
        return ("seq", parts)

    def atom(self, depth: int) -> Node:
        char = self.peek()
        self.at += 1
        if char == "(":
            return self.group(depth)
        if char == "[":
            return self.char(self.bracket(depth))
        if char == ".":
            return ("char", (lambda _: True) if self.dot_all else _ANY)
        if char in "^$":
            return ("start",) if char == "^" else ("finish", True)
        if char == "\\":
            return self.escaped()
        if char in "*+?{":
            raise PatternNotUnderstood(f"{char!r} with nothing to repeat")
        return self.char(_among(char))

    def char(self, takes: Takes) -> Node:
        if not self.ignore_case:
            return ("char", takes)
        # Without UNICODE_CASE, Java folds only ASCII.
        return ("char", lambda char: takes(char) or (char.isascii() and takes(char.swapcase())))

    def escaped(self) -> Node:
        if self.peek() in ("A", "z", "Z"):
            letter = self.peek()
            self.at += 1
            return ("start",) if letter == "A" else ("finish", letter == "Z")
        return self.char(self.escape())

    def escape(self) -> Takes:
        """Return the characters that the escape after a backslash matches."""
        letter = self.peek()
        self.at += 1
        if not letter:
            raise PatternNotUnderstood("a backslash at the end")
        if letter in _CLASSES:
            return _CLASSES[letter]
        if letter in "pP":
            return self.named(negated=letter == "P")
        if letter in _CONTROLS:
            return _among(_CONTROLS[letter])
        if letter in "ux":
            digits = self.peek(4 if letter == "u" else 2)
            try:
                char = chr(int(digits, 16))
            except ValueError:
                raise PatternNotUnderstood(f"\\{letter} without hexadecimal digits") from None
            self.at += len(digits)
            return _among(char)
        if letter in "123456789k":
            raise PatternNotUnderstood("a back reference")
        if letter.isascii() and letter.isalnum():
            raise PatternNotUnderstood(f"\\{letter}")
        return _among(letter)

    def named(self, *, negated: bool) -> Takes:
        end = self.text.find("}", self.at)
        name = self.text[self.at + 1 : end] if self.peek() == "{" and end > 0 else ""
        if name not in _NAMED:
            raise PatternNotUnderstood(f"the character class {name or self.peek()!r}")
        self.at = end + 1
        return _not(_NAMED[name]) if negated else _NAMED[name]

    def bracket(self, depth: int) -> Takes:
        """Parse a character class after its `[`."""
        if depth > MAX_DEPTH:
            raise PatternNotUnderstood("character classes nested too deeply")
        negated = self.take("^")
        members: list[Takes] = []
        first = True
        while first or self.peek() != "]":
            first = False
            if self.done:
                raise PatternNotUnderstood("an unmatched '['")
            if self.peek(2) == "&&":
                raise PatternNotUnderstood("an intersection (&&) of character classes")
            if self.take("["):
                members.append(self.bracket(depth + 1))
                continue
            low = self.member()
            if self.peek() == "-" and self.peek(2)[1:] not in ("]", "[", "") and isinstance(low, str):
                self.at += 1
                high = self.member()
                if not isinstance(high, str) or high < low:
                    raise PatternNotUnderstood("an empty range in a character class")
                members.append(lambda char, low=low, high=high: low <= char <= high)  # type: ignore[misc]
            else:
                members.append(_among(low) if isinstance(low, str) else low)
        self.at += 1
        folded = self.ignore_case

        def takes(char: str) -> bool:
            other = char.swapcase() if folded and char.isascii() else char
            return any(member(char) or member(other) for member in members) != negated

        # Fold here: after the negation it would be too late.
        return takes if not (folded and negated) else lambda char: takes(char) and takes(_other_case(char))

    def member(self) -> str | Takes:
        if self.take("\\"):
            if not self.done and not self.peek().isalnum():
                self.at += 1
                return self.text[self.at - 1]
            return self.escape()
        self.at += 1
        return self.text[self.at - 1]

    def group(self, depth: int) -> Node:
        ignore_case, dot_all, looking = self.ignore_case, self.dot_all, self.looking
        kind, number = "plain", 0
        if self.take("?"):
            if self.take("=") or self.take("!"):
                kind, self.looking = ("look" if self.text[self.at - 1] == "=" else "not"), True
            elif self.peek() == "<" and self.peek(2)[1:] not in ("=", "!"):
                number = self.numbered(self.group_name())
            elif not self.take(":") and self.flags():
                return ("seq", [])
        else:
            number = self.numbered("")
        inside = self.alternatives(depth + 1)
        if not self.take(")"):
            raise PatternNotUnderstood("an unmatched '('")
        self.ignore_case, self.dot_all, self.looking = ignore_case, dot_all, looking
        if kind != "plain":
            return ("look", inside, kind == "look")
        return ("group", inside, number) if number else inside

    def group_name(self) -> str:
        end = self.text.find(">", self.at)
        name = self.text[self.at + 1 : end]
        if end < 0 or not (name.isascii() and name.isalnum()):
            raise PatternNotUnderstood("a group's name")
        self.at = end + 1
        return name

    def numbered(self, name: str) -> int:
        if self.looking:
            raise PatternNotUnderstood("a capturing group inside a look-ahead")
        self.groups += 1
        if name in self.names:
            raise PatternNotUnderstood("two groups with the same name")
        if name:
            self.names[name] = self.groups
        return self.groups

    def flags(self) -> bool:
        """Set inline flags; return whether they stand alone, as in `(?i)`."""
        on = True
        while (flag := self.peek()) not in (":", ")"):
            self.at += 1
            if flag == "-":
                on = False
            elif flag == "i":
                self.ignore_case = on
            elif flag == "s":
                self.dot_all = on
            else:
                raise PatternNotUnderstood(f"the group (?{flag}")
        self.at += 1
        return self.text[self.at - 1] == ")"

    def repeated(self, node: Node) -> Node:
        low, high = 1, 1
        if self.take("*"):
            low, high = 0, -1
        elif self.take("+"):
            low, high = 1, -1
        elif self.take("?"):
            low, high = 0, 1
        elif self.take("{"):
            low, high = self.counts()
        else:
            return node
        greedy = not self.take("?")
        if self.peek() and self.peek() in "*+?{":
            raise PatternNotUnderstood("a possessive repetition, or a repetition of a repetition")
        return ("repeat", node, low, high, greedy)

    def counts(self) -> tuple[int, int]:
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at : max(end, self.at)].partition(",")
        if not _number(low) or (high and not _number(high)):
            raise PatternNotUnderstood("a repetition without numbers")
        self.at = end + 1
        most = int(high) if high else (-1 if comma else int(low))
        if int(low) > MAX_STEPS or most > MAX_STEPS or (most >= 0 and most < int(low)):
            raise PatternNotUnderstood("a repetition that is too long")
        return int(low), most


def _number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6


def _other_case(char: str) -> str:
    return char.swapcase() if char.isascii() else char
