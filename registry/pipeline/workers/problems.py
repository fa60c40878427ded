"""What can be wrong with a body. The message is the reason, without a word of the body's content."""

from __future__ import annotations


class Undecodable(Exception):
    """A body that isn't decoded; `problem` is a word of observations.BodyProblem, or `left_over`."""

    problem = "malformed"


class Malformed(Undecodable):
    """A body whose bytes its schema doesn't write, or that is no JSON."""


class LeftOver(Undecodable):
    """A body that has more bytes than its schema takes, which Spark's own decoder doesn't mind."""

    problem = "left_over"


class NotRead(Undecodable):
    """A body that may well be right, and whose reading was given up: it would cost too much, or end the process."""

    problem = "not_read"
