"""Folders and secrets: private, short enough, made whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.core.checks.security.base import check_secret_key
from django.test import override_settings

from dashboard.services import folders
from dashboard.services.errors import ServiceError
from dashboard.services.folders import cache_folder, default_data_folder, kept_secret, private_folder, socket_folder
from dashboard.services.layout import Layout
from dashboard.services.process import Watchdog


def test_the_data_folder_is_the_named_one_else_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(folders.sys, "platform", "linux")
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
    found = socket_folder(deep)
    assert len(os.fsencode(found / ".s.PGSQL.5432.lock")) <= folders.SOCKET_PATH_LIMIT
    assert socket_folder(deep) == found
    assert socket_folder(tmp_path) != found
    assert found.stat().st_mode & 0o777 == 0o700


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
    kept = layout.log("web").with_suffix(".log.1").read_bytes()
    assert len(kept) == 1024 * 1024 and kept.endswith(b"the end of the first part\n")
    layout.trim_log("nothing")


def test_our_programs_do_not_hear_of_a_part_that_was_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    monkeypatch.setenv("KEPT", "yes")
    layout = Layout.at(tmp_path / "data", Watchdog(), product={"SPARK_REMOTE": "", "REDIS_URL": "unix:///x"})
    own = layout.own_environment()
    assert "SPARK_REMOTE" not in own
    assert (own["KEPT"], own["REDIS_URL"]) == ("yes", "unix:///x")
    assert "KEPT" not in layout.plain_environment()
