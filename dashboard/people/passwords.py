"""Rules for passwords that people choose, beside Django's of length and of common passwords."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

#: characters that must be left once the words that belong to this installation are removed
LEAST_LEFT: Final = 8
PRODUCT: Final = "schemadesk"
HASH_LENGTH: Final = 40


class ContextWordsValidator:
    """Refuses passwords made of the account's name, the product's name or the site's host names."""

    def validate(self, password: str, user: Any = None) -> None:
        """Raise ValidationError if too little is left of the password without these words."""
        left = password.lower()
        for word in sorted(context_words(user), key=len, reverse=True):
            left = left.replace(word, "")
        if left != password.lower() and len(left) < LEAST_LEFT:
            raise ValidationError(self.get_help_text())

    def get_help_text(self) -> str:
        """Return the rule."""
        return _("Names of the account, the product and the site don’t count: choose at least 8 other characters.")


def context_words(user: Any) -> set[str]:
    """Return the words in lower case: those of the settings, and those of the account."""
    texts = [PRODUCT, *settings.ALLOWED_HOSTS]
    texts += [user.get_username(), user.email] if user is not None else []
    words = {part for text in texts for part in text.lower().replace("@", ".").split(".")}
    return {word for word in words if len(word) > 3}


class BreachedPasswordsValidator:
    """Refuses passwords in the operator's file of breached ones, if there is one.

    The file has a SHA-1 in hexadecimal at the start of each line, in order, as the Pwned Passwords are published. It is
    searched by bisection, because it can have many gigabytes.
    """

    def validate(self, password: str, user: Any = None) -> None:
        """Raise ValidationError if the password is in the file. Raises OSError if it can't be read."""
        if settings.BREACHED_PASSWORDS and is_listed(Path(settings.BREACHED_PASSWORDS), password):
            raise ValidationError(_("This password is known from a breach. Choose another one."))

    def get_help_text(self) -> str:
        """Return nothing: people can't look the file up."""
        return ""


def is_listed(path: Path, password: str) -> bool:
    """Return whether the sorted file has the password's hash."""
    wanted = hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper().encode()
    with path.open("rb") as file:
        low, high = 0, file.seek(0, 2)
        while low < high:  # the line is the first that begins in [low, high), or there is none
            middle = (low + high) // 2
            file.seek(middle and middle - 1)
            if middle:
                file.readline()
            begin, line = file.tell(), file.readline()
            if not line or begin >= high or line[:HASH_LENGTH].upper() >= wanted:
                if line[:HASH_LENGTH].upper() == wanted:
                    return True
                high = middle
            else:
                low = begin + len(line)
    return False
