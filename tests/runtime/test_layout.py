"""Folders and ports of the parts."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.checks.security.base import check_secret_key
from django.test import override_settings

from dashboard.runtime import PortTaken, ServiceError
from dashboard.runtime import layout as runtime_layout
from dashboard.runtime.layout import (
    Layout,
    cache_folder,
    default_data_folder,
    free_port,
    is_free,
    kept_ports,
    kept_secret,
    private_folder,
    socket_folder,
    web_port,
)
from dashboard.runtime.process import Watchdog


def test_the_data_folder_is_the_named_one_else_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runtime_layout.sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("SCHEMADESK_DATA", raising=False)
    assert default_data_folder() == tmp_path / ".local/share/schemadesk"
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    assert default_data_folder() == tmp_path / ".local/share/schemadesk"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert default_data_folder() == tmp_path / "xdg/schemadesk"
    monkeypatch.setenv("SCHEMADESK_DATA", str(tmp_path / "named"))
    assert default_data_folder() == tmp_path / "named"


def test_the_cache_is_the_named_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SCHEMADESK_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path


def test_a_private_folder_is_closed_to_others(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir(mode=0o777)
    assert private_folder(open_to_all).stat().st_mode & 0o777 == 0o700


def test_a_link_or_a_file_is_no_private_folder(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "file").write_text("")
    for name in ("link", "file"):
        with pytest.raises(ServiceError, match=name):
            private_folder(tmp_path / name)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of somebody else")
def test_somebody_elses_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12345, 12345)
    with pytest.raises(ServiceError, match="theirs"):
        private_folder(tmp_path / "theirs")


def test_sockets_fit_whatever_the_data_folder_is_called(tmp_path: Path) -> None:
    deep = tmp_path / "/".join(["a-rather-long-name"] * 10) / "ünïcode and spaces"
    folder = socket_folder(deep)
    assert len(os.fsencode(folder / ".s.PGSQL.5432.lock")) <= runtime_layout.SOCKET_PATH_LIMIT
    assert socket_folder(deep) == folder
    assert socket_folder(tmp_path) != folder
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_secret_is_made_once_and_private(tmp_path: Path) -> None:
    first = kept_secret(tmp_path / "key")
    assert len(first) >= 50
    assert kept_secret(tmp_path / "key") == first
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_an_empty_secret_is_none(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("\n")
    assert len(kept_secret(tmp_path / "key")) >= 50


def test_a_generated_key_passes_the_check_of_deployments(tmp_path: Path) -> None:
    with override_settings(SECRET_KEY=kept_secret(tmp_path / "django")):
        assert check_secret_key(None) == []


def test_a_short_key_of_an_earlier_version_is_kept(tmp_path: Path) -> None:
    (tmp_path / "django").write_text("k" * 43 + "\n")
    assert kept_secret(tmp_path / "django") == "k" * 43


def test_a_log_that_grew_is_emptied_and_its_writer_goes_on(tmp_path: Path) -> None:
    layout = Layout.at(tmp_path / "data", Watchdog())
    with layout.log("web").open("ab") as writer:
        writer.write(b"x" * 3_000_000 + b"the end of the first part\n")
        writer.flush()
        layout.trim_log("web", limit=2_000_000)
        writer.write(b"the second part\n")
    assert layout.log("web").read_bytes() == b"the second part\n"
    rotated = layout.log("web").with_suffix(".log.1").read_bytes()
    assert len(rotated) == 1024 * 1024 and rotated.endswith(b"the end of the first part\n")
    layout.trim_log("nothing")


def test_our_programs_do_not_hear_of_a_part_that_was_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    monkeypatch.setenv("KEPT", "yes")
    layout = Layout.at(tmp_path / "data", Watchdog(), product={"SPARK_REMOTE": "", "REDIS_URL": "unix:///x"})
    own = layout.own_environment()
    assert "SPARK_REMOTE" not in own
    assert (own["KEPT"], own["REDIS_URL"]) == ("yes", "unix:///x")
    assert "KEPT" not in layout.plain_environment()


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
def test_a_file_of_ports_that_makes_no_sense_is_rewritten(tmp_path: Path, text: str) -> None:
    (tmp_path / "ports.json").write_text(text)
    assert is_free(kept_ports(tmp_path, ["kafka"])["kafka"])
