"""Ports: free ones, the same ones again, and clear words about taken ones."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.services.errors import PortTaken
from dashboard.services.ports import free_port, is_free, kept_ports, web_port


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_port_that_is_listened_on_is_not_free(taken: int) -> None:
    assert not is_free(taken)
    assert is_free(free_port())


def test_a_port_that_is_listened_on_at_all_addresses_is_not_free() -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        assert not is_free(server.getsockname()[1])


def test_the_usual_port_is_taken_silently_when_it_is_free() -> None:
    port = free_port()
    assert web_port(None, port) == (port, "")


def test_another_port_is_chosen_and_said_when_the_usual_one_is_taken(taken: int) -> None:
    port, remark = web_port(None, taken)
    assert port != taken and is_free(port)
    assert str(taken) in remark and str(port) in remark


def test_a_port_that_was_asked_for_is_that_or_an_error(taken: int) -> None:
    port = free_port()
    assert web_port(port, taken) == (port, "")
    with pytest.raises(PortTaken, match=str(taken)):
        web_port(taken, port)


def test_ports_are_kept_for_the_next_start(tmp_path: Path) -> None:
    first = kept_ports(tmp_path, ["kafka", "kafka-controller", "spark"])
    assert len(set(first.values())) == 3
    assert kept_ports(tmp_path, ["kafka", "kafka-controller", "spark"]) == first
    assert kept_ports(tmp_path, ["spark"]) == {"spark": first["spark"]}
    assert kept_ports(tmp_path, ["kafka"]) == {"kafka": first["kafka"]}


def test_a_kept_port_that_was_taken_meanwhile_is_replaced(tmp_path: Path) -> None:
    first = kept_ports(tmp_path, ["kafka"])
    with socket.create_server(("127.0.0.1", first["kafka"])):
        second = kept_ports(tmp_path, ["kafka"])
    assert second != first
    assert kept_ports(tmp_path, ["kafka"]) == second


@pytest.mark.parametrize("text", ["", "[]", '{"kafka": "x"}', '{"kafka": 99999999}', "{"])
def test_a_file_of_ports_that_makes_no_sense_is_written_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "ports.json").write_text(text)
    assert is_free(kept_ports(tmp_path, ["kafka"])["kafka"])
