"""What scan specifications and observations tell of themselves."""

from __future__ import annotations

from registry.observations import FramedMessages, KafkaConnection, Span, TopicScan


def test_a_password_is_not_shown() -> None:
    assert "hunter2" not in repr(TopicScan(KafkaConnection("a:1", "SASL_SSL", "PLAIN", "u", "hunter2"), ()))


def test_a_schema_id_is_a_number_of_its_framing_alone() -> None:
    span = Span(3, 120, 10, 14, 1_780_000_000_000, 1_780_000_000_500)
    assert FramedMessages("t", "value", 0, "id", "7", span).schema_id == 7
    assert FramedMessages("t", "value", 0, "guid", "0190b6d5-5f83-7d6e-a1b2-c3d4e5f60718", span).schema_id is None
