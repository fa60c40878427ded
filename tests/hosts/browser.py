"""A person's session at the site, by curl on the client's host: its cookies are those of a browser."""

from __future__ import annotations

import re
from typing import Final

from tests.hosts.installation import ADDRESSES, NAME, PROXY, Installation

LOGIN: Final = "/ui/accounts/login/"
JAR, AUTHORITY = "/run/cookies", "/run/ca.pem"
CURL: Final = f"curl --silent --cacert {AUTHORITY} --resolve {NAME}:443:{ADDRESSES[PROXY]} --cookie {JAR}"


class Browser:
    """Signed in as the first admin, through the proxy."""

    def __init__(self, site: Installation) -> None:
        self._host = site.net["client"]
        self._host.write(AUTHORITY, (site.folder / "ca.pem").read_text())
        signed = re.search(r"The admin (\S+) signs in with (\S+)", site.said)
        assert signed is not None
        page = self._host.run(f"{CURL} --cookie-jar {JAR} https://{NAME}{LOGIN}")
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
        assert token is not None, page
        fields = {"csrfmiddlewaretoken": token[1], "login": signed[1], "password": signed[2]}
        words = " ".join(f"--data-urlencode '{name}={value}'" for name, value in fields.items())
        self._host.run(
            f"{CURL} --cookie-jar {JAR} --fail --referer https://{NAME}{LOGIN} {words} https://{NAME}{LOGIN}"
        )

    def statuses(self, path: str, count: int) -> list[str]:
        """The statuses of requests that are sent at the same time; 302 to who isn't signed in."""
        one = f"{CURL} --output /dev/null --write-out '%{{http_code}} ' https://{NAME}{path}"
        return self._host.run(f"for _ in $(seq {count}); do {one} & done; wait").split()
