"""One step of a plan at a registry elsewhere: it asks first what is there, writes what is missing, and reads it back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from registry.audit.services import record
from registry.errors import InvalidReference, PlanChanged, RemoteUnavailable, SchemadeskError
from registry.formats.base import ParsedSchema, Reference, ResolvedReference
from registry.promotions.models import ApplyStep, PromotionRequest
from registry.promotions.plan import ADOPT, CONFIG, GIVEN_ID, NONE, REGISTER, REPEAT, Step
from registry.promotions.services.claiming import LEASE, Claim
from registry.promotions.services.releasing import Written, in_words
from registry.subjects.contracts import without_version
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.remote_writes import LATEST, RemoteWriter, SentSchema, settings_for_remote
from registry.subjects.selectors.parsed import MAX_REFERENCE_DEPTH, parse_schema
from registry.subjects.snapshot import VersionRecord

MAX_FAILURE: Final = 2000
MAX_READ_BACK: Final = 500
#: a subject and a version of it
_Place = tuple[SubjectName, int]


class Remote:
    """A worker's steps at the remote."""

    def __init__(self, writer: RemoteWriter, claim: Claim, count: int) -> None:
        self.writer = writer
        self.claim = claim
        self.count = count
        self._read: dict[_Place, VersionRecord] = {}

    def do(self, row: ApplyStep, step: Step) -> None:
        """One step, committed as running before and as done after it."""
        self._keep(row, step, state=ApplyStep.RUNNING, started_at=row.started_at or timezone.now(), said="")
        try:
            written = RUN[step.kind](self, with_numbers(step, self.claim.numbers))
        except SchemadeskError as error:
            self._keep(row, step, state=ApplyStep.FAILED, said=error.placed[:MAX_FAILURE])
            where = f"Step {row.position + 1} of {self.count} ({in_words(step)}): {error.placed}"
            raise RemoteUnavailable(where) from error
        self._keep(
            row,
            step,
            state=ApplyStep.DONE,
            said=written.said,
            version_number=written.version or None,
            schema_id=written.schema_id or None,
            done_at=timezone.now(),
        )

    def _keep(self, row: ApplyStep, step: Step, **values: Any) -> None:
        """Commit what became of a step, if the request is still this worker's. Raises ClaimLost."""
        with transaction.atomic():
            self.claim.locked()
            word = values.get("state", row.state)
            why = f"apply request {self.claim.request_id}, step {row.position + 1}: {in_words(step)}, {word}"
            record(by=self.claim.by, why=why)
            for name, value in values.items():
                setattr(row, name, value)
            row.save(update_fields=list(values))
            PromotionRequest.objects.filter(pk=self.claim.request_id).update(claim_until=timezone.now() + LEASE)

    def register(self, step: Step) -> Written:
        """Add the schema, unless the subject has it."""
        subject = parse_subject(step.subject)
        sent = self._sent(step, subject)
        number = self.writer.find(subject, sent)
        said = "It was there already."
        if number is None:
            self.claim.renew()
            if step.id_outlook == GIVEN_ID:  # the subject is in the mode IMPORT there
                self.writer.register(subject, sent, schema_id=step.source_id, version=step.target_version)
            else:
                self.writer.register(subject, sent)
            number, said = self.writer.find(subject, sent), ""
        if number is None:
            raise RemoteUnavailable("The remote took the schema and doesn't find it under its subject.")
        if number != step.target_version:
            said = f"{said} It has the version {number}, not {step.target_version}.".strip()
        return self.read_back(step, number, said)

    def repeat(self, step: Step) -> Written:
        """The earlier text as a version of its own number: that number tells whether it is there already."""
        subject = parse_subject(step.subject)
        if self.writer.version(subject, step.target_version) is not None:
            return self.read_back(step, step.target_version, "It was there already.")
        self.claim.renew()
        self.writer.register(subject, self._sent(step, subject), version=step.target_version)
        if self.writer.version(subject, step.target_version) is None:
            raise RemoteUnavailable(
                f"The remote keeps the schema's earlier version and makes no version {step.target_version} of it:"
                " it doesn't know versions that are given with a schema."
            )
        return self.read_back(step, step.target_version, "")

    def configure(self, step: Step) -> Written:
        """The subject's own settings; those that the API has no name for stay out, and that is said."""
        subject = parse_subject(step.subject)
        wanted, left = settings_for_remote(step.config or {})
        said = f"Not set, since the remote has no such setting: {', '.join(left)}." if left else ""
        if _holds(self.writer.own_config(subject), wanted):
            return Written(said=f"It was set already. {said}".strip())
        self.claim.renew()
        self.writer.put_config(subject, wanted)
        found = self.writer.own_config(subject)
        if not _holds(found, wanted):
            different = sorted(name for name in wanted if not _holds(found, {name: wanted[name]}))
            raise RemoteUnavailable(f"The remote didn't keep the config as it was sent: {', '.join(different)}.")
        return Written(said=said)

    def there(self, step: Step) -> Written:
        """Nothing to write: what should be there is read."""
        return self.read_back(step, step.target_version, "")

    def read_back(self, step: Step, number: int, said: str) -> Written:
        """What the remote has under that number has to mean what was approved; its text may be written otherwise."""
        subject = parse_subject(step.subject)
        self._read.pop((subject, number), None)
        found = self._version(subject, number)
        if found.subject != subject or found.version != number or self._parsed(found).fingerprint != step.fingerprint:
            raise PlanChanged(f"{step.subject} version {number} at the remote isn't the schema that was approved.")
        lost = [
            name
            for name, wanted, kept in (
                ("metadata", without_version(step.metadata), found.metadata),
                ("rule set", step.rule_set, found.rule_set),
            )
            if not _holds(kept or {}, wanted or {})
        ]
        if lost and step.writes:
            said = f"{said} The remote doesn't keep its {' and '.join(lost)}.".strip()
        return Written(number, found.schema_id, said)

    def _sent(self, step: Step, subject: SubjectName) -> SentSchema:
        """The schema as it is sent. What is left out is the latest version's, so that none is said where that has one."""
        metadata, rule_set = step.metadata, step.rule_set
        if metadata == {} or rule_set == {}:
            latest = self.writer.version(subject, LATEST)
            metadata = metadata if metadata or (latest and latest.metadata) else None
            rule_set = rule_set if rule_set or (latest and latest.rule_set) else None
        return SentSchema(step.schema_type, step.text, step.references, metadata, rule_set)

    def _version(self, subject: SubjectName, number: int) -> VersionRecord:
        if (subject, number) not in self._read:
            if len(self._read) >= MAX_READ_BACK:
                raise InvalidReference(f"It refers to more than {MAX_READ_BACK} versions at the remote.")
            found = self.writer.version(subject, number)
            if found is None:
                raise RemoteUnavailable(f"The remote has no {subject.qualified} version {number}.")
            self._read[subject, number] = found
        return self._read[subject, number]

    def _parsed(self, version: VersionRecord) -> ParsedSchema:
        return parse_schema(version.schema_type, version.text, self._resolved(version, {}, ()), is_new=False)

    def _resolved(
        self, version: VersionRecord, known: dict[_Place, ResolvedReference], above: tuple[_Place, ...]
    ) -> tuple[ResolvedReference, ...]:
        """What a version at the remote refers to, as the remote has it; each of them is resolved once."""
        if len(above) > MAX_REFERENCE_DEPTH:
            raise InvalidReference(f"References are nested more than {MAX_REFERENCE_DEPTH} deep.")
        found = []
        for reference in version.references:
            place = parse_subject(reference.subject, context=version.subject.context), reference.version
            if place in above:
                raise InvalidReference(f"{place[0].qualified} version {place[1]} at the remote refers to itself.")
            if place not in known:
                there = self._version(*place)
                inner = self._resolved(there, known, (*above, place))
                known[place] = ResolvedReference(reference.name, reference.subject, there.version, there.text, inner)
            found.append(replace(known[place], name=reference.name, subject=reference.subject))
        return tuple(found)


#: kind of a step → what does it
RUN: Final[Mapping[str, Callable[[Remote, Step], Written]]] = {
    REGISTER: Remote.register,
    REPEAT: Remote.repeat,
    CONFIG: Remote.configure,
    ADOPT: Remote.there,
    NONE: Remote.there,
}


def with_numbers(step: Step, numbers: Mapping[tuple[str, int], int]) -> Step:
    """The step with its references by the numbers that the remote gave."""
    references = tuple(
        Reference(ref.name, ref.subject, numbers.get((ref.subject, ref.version), ref.version))
        for ref in step.references
    )
    return replace(step, references=references)


def _holds(found: Any, wanted: Any) -> bool:
    """Whether all that is wanted is there; servers write out what is empty or leave it out."""
    if isinstance(wanted, dict):
        given = found if isinstance(found, dict) else {}
        return all(_holds(given.get(name), value) for name, value in wanted.items())
    return found == wanted or (not found and not wanted and not isinstance(wanted, bool))
