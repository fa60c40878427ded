"""Sample pages: the search."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.widgets import ActiveFilter, Link, Problem, Section
from dashboard.search.views import OperatorRow, PastedPart, PasteForm, ResultGroup, ResultRow, SearchPage
from registry.search.query import OPERATORS
from tests.site.samples.cast import ARABIC, DEV, HOSTILE, LONG, PROD, frame, subject_url

FIELD = ResultRow(
    title="Customer.address.email", url=subject_url("dev", "customers-value") + "#field-3", environment=DEV, above="customers-value",
    above_url=subject_url("dev", "customers-value"), facts=("string", "version 3"), tags=("PII", "team-crm"),
    text="Where invoices are sent.",
)  # fmt: skip
SUBJECT = ResultRow(
    title="customers-value", url=subject_url("dev", "customers-value"), environment=PROD, facts=("version 3", "Avro", "12 fields"),
    tags=("gold",), text="All that is known of those who buy.",
)  # fmt: skip
BROKEN = replace(
    SUBJECT, title="broken-value", facts=("version 1", "Avro"), tags=(), text="", problem="Line 3: a type is missing."
)

START = SearchPage(
    frame=frame("Search", Section.SEARCH),
    url="/ui/search",
    query="",
    operators=tuple(
        OperatorRow(name=row.name, finds=row.finds, example=Link(label=row.example, url="/ui/search?q=field%3Aemail"))
        for row in OPERATORS.values()
    ),
    paste=PasteForm(),
)
FOUND = replace(
    START,
    query='field:email doc:"gdpr relevant"',
    is_asked=True,
    chips=(
        ActiveFilter(label="field:email", url="/ui/search?q=doc%3Agdpr"),
        ActiveFilter(label='doc:"gdpr relevant"', url="/ui/search?q=field%3Aemail"),
    ),
    groups=(
        ResultGroup(
            code="subjects",
            title="Subjects",
            icon="layers",
            count="12",
            rows=(SUBJECT, BROKEN, replace(SUBJECT, similar=True)),
        ),
        ResultGroup(
            code="fields",
            title="Fields",
            icon="list-tree",
            count="1,000+",
            rows=(FIELD, replace(FIELD, title=ARABIC)),
            all_url="/ui/search?q=a&group=fields",
        ),
        ResultGroup(
            code="tags",
            title="Tags",
            icon="circle-dot",
            count="1",
            rows=(ResultRow(title="PII", url="/ui/search?q=tag%3APII", facts=("3 subjects",)),),
        ),
    ),
    indexing=True,
)
PAGED = replace(
    FOUND,
    only="fields",
    indexing=False,
    groups=(
        ResultGroup(
            code="fields",
            title="Fields",
            icon="list-tree",
            count="",
            rows=(FIELD,),
            first_url="/ui/search?q=a",
            next_url="/ui/search?q=a&group=fields&cursor=1.2.3",
        ),
    ),
)
NOTHING = replace(
    START,
    query=HOSTILE,
    is_asked=True,
    suggestions=(Link(label="email", url="/ui/search?q=field%3Aemail"), Link(label=LONG, url="/ui/search?q=x")),
)
REFUSED = replace(
    START,
    query="colour:red",
    is_asked=True,
    problem=Problem(what="'colour:' is no operator: there are field:, id:, type:."),
)
PASTED_SCHEMA = replace(
    START,
    is_asked=True,
    pasted=PastedPart(
        what="Schema", facts=("Avro, 12 field names", f"fingerprint {'0123456789abcdef' * 4}"), equal=(SUBJECT,),
        nearest=(replace(SUBJECT, facts=(*SUBJECT.facts, "9 shared names, 61% of both")),),
    ),
)  # fmt: skip
PASTED_MESSAGE = replace(
    START,
    is_asked=True,
    pasted=PastedPart(
        what="Message",
        facts=("schema id 14",),
        equal=(SUBJECT,),
        decode_url="/ui/decode",
        message="00 00 00 00 0e 02",
    ),
)
PASTED_WRONG = replace(
    START,
    is_asked=True,
    pasted=PastedPart(
        what="Schema",
        problem=Problem(
            what="The pasted text looks like a schema but can’t be read as one.",
            detail="Expecting ',' (line 2, column 5)",
        ),
    ),
)
