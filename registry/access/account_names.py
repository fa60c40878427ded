"""Names and email addresses of accounts: which are allowed, and which count as the same.

A name uses one script, as Unicode's UTS #39 requires at the level "Highly Restrictive". A letter's script is the first
word of its Unicode name, which is precise enough for letters in the normal form NFKC.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from registry.errors import InvalidInput

_SYSTEM: Final = (
    "anonymous bench can_promote check_compatibility command demo migrate mirror operator prepare program prune root scan"
    " scan_source schedule schemadesk somebody system task usage webhooks"
)
#: actors in the audit that aren't accounts; the others contain spaces, which a username can't
RESERVED: Final = frozenset(_SYSTEM.split())
#: scripts that one language writes together
_TOGETHER: Final = (
    frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "CJK", "BOPOMOFO"}),
    frozenset({"LATIN", "CJK", "HANGUL"}),
)
#: letters that look like a Latin one in lower or upper case
_LOOKALIKES: Final = str.maketrans(
    "ıɩǀɑɡ" + "авеікмнорстухјѕһӏԁԛԝѵ" + "αβεζηικμνορτυχ",
    "iilag" + "abeikmhopctyxjshldqwv" + "abezhikmvoptyx",
)
_UNSEEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
#: invisible characters of other categories: marks, letters and a symbol without a glyph
_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_DOTS: Final = re.compile("[.\u3002\uff0e\uff61]")


def checked_username(username: str) -> str:
    """Return the stripped username if a new account may have it. Raises InvalidInput, with the field."""
    username = username.strip()
    try:
        UnicodeUsernameValidator()(username)
    except ValidationError as error:
        raise _refused("A username can only contain letters, digits and @ . + - _.") from error
    if len(username) > 150:
        raise _refused("A username can have at most 150 characters.")
    normal = unicodedata.normalize("NFKC", username)
    if normal != username:
        raise _refused(f"Write the username as {normal}.")
    scripts = {_script(char) for char in username if not char.isascii() or char.isalpha()}
    if len(scripts) > 1 and not any(scripts <= together for together in _TOGETHER):
        names = " and ".join(sorted(script.capitalize() for script in scripts))
        raise _refused(f"The username mixes letters of different scripts ({names}). Use letters of one script.")
    if name_key(username) in RESERVED:
        raise _refused(f"The username {username} is reserved for the product itself. Choose another.")
    return username


def _refused(message: str) -> InvalidInput:
    return InvalidInput(message, field="username")


def _script(char: str) -> str:
    word = re.split("[ -]", unicodedata.name(char, "UNKNOWN"), maxsplit=1)[0]
    return "CJK" if word == "IDEOGRAPHIC" else word


def name_key(name: str) -> str:
    """Return the key by which names are compared: case-folded, with lookalikes as Latin letters."""
    return _folded(name).translate(_LOOKALIKES)


def same_name(name: str, others: Iterable[str]) -> str | None:
    """Return the first other name that people or the sign-in could confuse with this one; None if there is none."""
    key = name_key(name)
    return next((other for other in others if name_key(other) == key), None)


def address_key(address: str) -> str:
    """Return the key by which email addresses are compared; "" for none.

    Case, compatibility characters such as the Kelvin sign for K, invisible characters, and the two ways to write an
    international domain make no difference.
    """
    local, at, domain = _folded("".join(char for char in address if not _is_unseen(char))).rpartition("@")
    return local + at + ".".join(_ascii_label(label) for label in _DOTS.split(domain.rstrip(".\u3002")))


def _ascii_label(label: str) -> str:
    """Return a domain label in its ASCII form; unchanged if it has none."""
    with suppress(UnicodeError):
        label = label.encode().decode("idna") if label.startswith("xn--") else label
    with suppress(UnicodeError):
        label = label.encode("idna").decode()
    return label.casefold()


def checked_email(email: str) -> str:
    """Return the address; "" for none. Raises InvalidInput, also for invisible and compatibility characters."""
    if not email:
        return ""
    unseen = next(filter(_is_unseen, email), "")
    if unseen:
        raise InvalidInput(
            f"The email address contains a space or an invisible character (U+{ord(unseen):04X}). Remove it.",
            field="email",
        )
    try:
        validate_email(email)
    except ValidationError as error:
        raise InvalidInput("That is not a valid email address.", field="email") from error
    if len(email) > 254:
        raise InvalidInput("An email address can have at most 254 characters.", field="email")
    if unicodedata.normalize("NFKC", email) != email or _folded(email) != email.lower():
        raise InvalidInput(f"Write the email address as {_folded(email)}.", field="email")
    return email


def issued_email(email: object) -> str:
    """Return the address from an issuer: as it is if it is valid, else its key if that is valid, else ""."""
    if not isinstance(email, str):
        return ""
    for text in (email.strip(), address_key(email)):
        with suppress(InvalidInput):
            return checked_email(text)
    return ""


def _is_unseen(char: str) -> bool:
    return unicodedata.category(char) in _UNSEEN_CATEGORIES or bool(_UNSEEN.match(char))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).strip()
