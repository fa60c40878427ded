"""Suggestions: a changed text of a proposed schema, which a discussion offers and the requester takes as it is.

Only the lines that a suggestion changes are taken over, so that several suggestions for different lines can be taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from registry.errors import InvalidInput, WrongState
from registry.formats.base import Reference
from registry.promotions.models import PromotionRequest, RequestItem, Thread
from registry.promotions.requests.state_machine import refuse_unstorable, save_item
from registry.subjects.policy.effective_policy import config_and_settings
from registry.subjects.registration.submission import prepare
from registry.subjects.versions.qualified_names import SubjectName


def checked_suggestion(request: PromotionRequest, subject: str, text: str) -> dict[str, str]:
    """Return the suggested text and the proposed text that it changes; nothing if it changes nothing.

    Raises InvalidInput for a request without a proposed text, and what a registration raises for an invalid schema.
    """
    suggestion = _normalized(text)
    if not suggestion.strip():
        return {}
    item = _proposed_item(request)
    if item is None or subject not in ("", _subject_of(item).qualified):
        sentence = f"Request {request.pk} is for a registered version, whose text can't change. Comment on it instead."
        raise InvalidInput(sentence, field="suggestion")
    if suggestion.rstrip() == _normalized(item.text).rstrip():
        return {}
    _fingerprint(request, item, suggestion)
    return {"suggestion": suggestion, "suggested_on": item.text}


def prepared_change(request: PromotionRequest, thread: Thread) -> tuple[str, str]:
    """Return the text with the suggested change, and its fingerprint. Raises WrongState if it no longer fits."""
    item = _item(request)
    text = _merged(thread, item)
    return text, _fingerprint(request, item, text)


def change_text(request: PromotionRequest, thread: Thread, change: tuple[str, str]) -> None:
    """Store a prepared change of the locked request. Raises WrongState if the text has changed since it was prepared."""
    item, (text, fingerprint) = _item(request), change
    if _merged(thread, item) != text:
        raise WrongState("The proposed text has just changed. Open the request again.")
    item.text, item.fingerprint = text, fingerprint
    save_item(item, request.target)
    request.fingerprint = fingerprint
    request.save(update_fields=["fingerprint"])


def _item(request: PromotionRequest) -> RequestItem:
    item = _proposed_item(request)
    assert item is not None, "only a request with a proposed text has suggestions"
    return item


def _proposed_item(request: PromotionRequest) -> RequestItem | None:
    is_proposed = request.kind == PromotionRequest.PROPOSE
    return request.items.order_by("position").first() if is_proposed else None


def _subject_of(item: RequestItem) -> SubjectName:
    return SubjectName(item.context_name, item.subject_name)


def _fingerprint(request: PromotionRequest, item: RequestItem, text: str) -> str:
    """Return the fingerprint of the text, parsed under the limits of a registration."""
    refuse_unstorable(text)
    registry, subject = request.target.registry, _subject_of(item)
    is_new = config_and_settings(registry, subject)[1].validate_new_schemas is not False
    references = [Reference(str(ref["name"]), str(ref["subject"]), int(ref["version"])) for ref in item.references]
    return prepare(registry, subject, text, item.schema_type, references, is_new=is_new).schema.fingerprint


def _normalized(text: str) -> str:
    """Return the text with line feeds alone; a form sends other ends of lines."""
    return text.replace("\r\n", "\n")


def _merged(thread: Thread, item: RequestItem) -> str:
    """Return the present text with the lines that the suggestion changes. Raises WrongState."""
    texts = (thread.suggested_on, thread.suggestion, item.text)
    before, changed, now = (_normalized(text).split("\n") for text in texts)
    return thread.suggestion if before == now else "\n".join(_lines(before, changed, now))


def _lines(before: Sequence[str], changed: Sequence[str], now: Sequence[str]) -> Iterator[str]:
    """Yield the lines of `now` with the changes from `before` to `changed`. Raises WrongState if `now` differs there."""
    same = SequenceMatcher(None, before, now, autojunk=False).get_matching_blocks()
    done = 0
    for kind, start, end, new_start, new_end in SequenceMatcher(None, before, changed, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        # the lines around a change must be the same too, so that it is clear where it belongs
        first, last = max(0, start - 1), min(len(before), end + 1)
        block = next((block for block in same if block.a <= first and last <= block.a + block.size), None)
        if block is None:
            raise WrongState(
                "The proposed text has changed in the same lines since this was suggested. Ask for a new suggestion."
            )
        shift = block.b - block.a
        yield from now[done : start + shift]
        yield from changed[new_start:new_end]
        done = end + shift
    yield from now[done:]
