"""Java trusts whom this machine trusts."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest

from dashboard.runtime.java import find_java, trust_options

PROGRAM = """
public class Count {
    public static void main(String[] words) throws Exception {
        var factory = javax.net.ssl.TrustManagerFactory.getInstance("PKIX");
        factory.init((java.security.KeyStore) null);
        var manager = (javax.net.ssl.X509TrustManager) factory.getTrustManagers()[0];
        System.out.println(manager.getAcceptedIssuers().length);
    }
}
"""


@pytest.mark.slow
def test_java_reads_the_machine_s_authorities(tmp_path: Path) -> None:
    (tmp_path / "Count.java").write_text(PROGRAM)
    java = find_java()
    if not (java.home / "bin" / "javac").exists():  # a runtime alone can't compile the probe; the fetch itself shows it
        assert trust_options(tmp_path)
        return
    command = [java.program, *trust_options(tmp_path), str(tmp_path / "Count.java")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert int(shown) == len({*ssl.create_default_context().get_ca_certs(binary_form=True)})


def test_without_authorities_java_keeps_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Empty:
        def get_ca_certs(self, binary_form: bool) -> list[bytes]:
            assert binary_form
            return []

    monkeypatch.setattr(ssl, "create_default_context", Empty)
    assert trust_options(tmp_path) == []
