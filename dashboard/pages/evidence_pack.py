"""The evidence pack of a request as a file: JSON for programs, one HTML page that needs nothing else for people."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any, Final

from django.core.serializers.json import DjangoJSONEncoder
from django.template.loader import render_to_string

from dashboard.texts import for_everybody
from registry.access.roles import Actor
from registry.promotions.evidence_pack import evidence_of

STYLE: Final = (Path(__file__).resolve().parent.parent / "styles" / "evidence_pack.css").read_text()
#: the page's own policy: its one style and nothing else, wherever the file is opened
POLICY: Final = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    + "'"
)


def pack_of(request_id: int, by: Actor) -> dict[str, Any]:
    """What goes into the file. Raises NotSignedIn, NotAllowed, RequestNotFound."""
    return evidence_of(request_id, by)


def as_json(pack: dict[str, Any]) -> str:
    """The pack as JSON."""
    return json.dumps(pack, indent=2, ensure_ascii=False, cls=DjangoJSONEncoder)


def as_html(pack: dict[str, Any]) -> str:
    """The pack as one HTML page without scripts, links or pictures."""
    with for_everybody():
        return render_to_string("promotions/evidence_pack.html", {"pack": pack, "style": STYLE, "policy": POLICY})
