"""Clusters, sources, scans, findings, deployments that programs reported, and minimum versions of subjects."""

from __future__ import annotations

from typing import Final, Self

from django.db import models

from registry.access.permission_filters import Extent, RegistryScopedQuerySet, SubjectScopedQuerySet, VisibleQuerySet

MAX_LABEL: Final = 200
MAX_URL: Final = 2_000


class Deployment(models.Model):
    """A deployment: a label, when it began, and whose messages it may have changed; an empty pattern means any."""

    registry = models.ForeignKey("subjects.Registry", on_delete=models.CASCADE, related_name="deployments")
    label = models.CharField(max_length=MAX_LABEL)
    at = models.DateTimeField(help_text="when it began")
    url = models.CharField(max_length=MAX_URL, blank=True, help_text="the run that deployed it")
    subjects = models.CharField(max_length=512, blank=True, help_text="shell pattern of qualified names")
    topics = models.CharField(max_length=249, blank=True, help_text="shell pattern of topics")
    client = models.CharField(max_length=128, blank=True, help_text="a declared client: the subjects that it has")
    told_at = models.DateTimeField(auto_now_add=True)
    told_by = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["registry", "label", "at"], name="one_deployment"),
            models.CheckConstraint(condition=~models.Q(label=""), name="deployment_has_a_label"),
        ]
        indexes = [
            models.Index(fields=["registry", "-at", "-id"], name="deployments_of_a_registry"),
            models.Index(fields=["-at", "-id"], name="deployments_newest_first"),
        ]

    def __str__(self) -> str:
        return f"{self.label} at {self.at:%Y-%m-%d %H:%M}"


class MinimumVersion(models.Model):
    """The minimum version for new messages: later messages with an older version are drift; old ones stay readable."""

    subject = models.OneToOneField("subjects.Subject", on_delete=models.CASCADE, related_name="minimum_version")
    version = models.PositiveIntegerField()
    reason = models.TextField()
    set_by = models.TextField()
    set_at = models.DateTimeField(help_text="when the minimum was set")

    class Meta:
        db_table = "drift_leastversion"
        constraints = [
            models.CheckConstraint(condition=models.Q(version__gte=2), name="least_version_forbids_one"),
            models.CheckConstraint(condition=~models.Q(reason=""), name="least_version_says_why"),
        ]

    def __str__(self) -> str:
        return f"{self.subject_id}: {self.version}"


MODES = ("since_last", "tail", "window", "full")
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SCAN_STATES = ("queued", "running", "done", "failed", "cancelled")
FINDING_STATES = ("open", "acknowledged", "resolved")
SEVERITIES = ("break", "risk", "notice")
SIDES = ("key", "value")
FRAMINGS = ("id", "guid", "content_type")


class ClusterQuerySet(VisibleQuerySet["Cluster"]):
    """Clusters: visible with any source that reads them; unused ones only to people who may see everything."""

    def covered_by(self, extent: Extent) -> Self:
        """Return the clusters of sources in the extent."""
        return self if extent.is_whole else self.filter(pk__in=Source.objects.covered_by(extent).values("cluster"))


class Cluster(models.Model):
    """A Kafka cluster. Only typed fields: free client properties could read files and run code."""

    name = models.CharField(max_length=128, unique=True)
    bootstrap = models.CharField(max_length=1024, help_text="host:port, several separated by commas")
    security_protocol = models.CharField(max_length=16, default="PLAINTEXT")
    sasl_mechanism = models.CharField(max_length=16, blank=True)
    username = models.CharField(max_length=255, blank=True)
    secret = models.CharField(max_length=64, blank=True, help_text="the name of the stored password")
    ca_pem = models.TextField(blank=True, help_text="the certificate authority of the cluster's TLS, as PEM")
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.TextField()

    objects = ClusterQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(security_protocol__in=SECURITY_PROTOCOLS), name="known_security_protocol"
            ),
            models.CheckConstraint(
                condition=models.Q(sasl_mechanism__in=("", *SASL_MECHANISMS)), name="known_sasl_mechanism"
            ),
            models.CheckConstraint(
                condition=models.Q(security_protocol__startswith="SASL", sasl_mechanism__gt="", username__gt="")
                | (~models.Q(security_protocol__startswith="SASL") & models.Q(sasl_mechanism="")),
                name="sasl_needs_its_fields",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class SourceQuerySet(RegistryScopedQuerySet["Source"]):
    """Sources: one reads data of more than one subject, so it needs the right to its whole registry."""


class Source(models.Model):
    """A source that is compared with a registry, on a schedule and on demand; its kind is in registry.drift.sources."""

    registry = models.ForeignKey("subjects.Registry", on_delete=models.CASCADE, related_name="sources")
    context = models.CharField(max_length=255, blank=True, help_text="the context of the schema ids in the messages")
    kind = models.CharField(max_length=64, help_text="the name of a class that is registered in registry.drift.sources")
    name = models.CharField(max_length=1024, help_text="the name that people see; for a checkpoint its path")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, null=True, blank=True, related_name="sources")
    config = models.JSONField(default=dict, blank=True, help_text="the values of the fields that its kind declares")
    include = models.JSONField(default=list, help_text="shell patterns of topics; none: all")
    exclude = models.JSONField(default=list, help_text="shell patterns of topics that are left out")
    mode = models.CharField(max_length=12, default="since_last")
    tail_messages = models.PositiveIntegerField(default=10_000, help_text="mode tail: messages per partition")
    window_seconds = models.PositiveIntegerField(default=86_400, help_text="mode window: how far back")
    max_messages = models.PositiveBigIntegerField(default=1_000_000)
    max_bytes = models.PositiveBigIntegerField(default=2 * 1024**3)
    max_seconds = models.PositiveIntegerField(default=300)
    first_slice = models.PositiveIntegerField(
        null=True, blank=True, help_text="messages that the next scan reads first, by the rate of the last one"
    )
    keep_samples = models.BooleanField(default=True, help_text="masked samples as evidence")
    clean_scans = models.PositiveSmallIntegerField(default=2, help_text="clean scans in a row that resolve a finding")
    every_seconds = models.PositiveIntegerField(null=True, blank=True, help_text="null: only on demand")
    next_scan_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.TextField()

    objects = SourceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["registry", "kind", "name"], name="one_source"),
            models.CheckConstraint(condition=models.Q(mode__in=MODES), name="known_scan_mode"),
            models.CheckConstraint(
                condition=~models.Q(kind__in=("kafka", "debezium")) | models.Q(cluster__isnull=False),
                name="topics_have_a_cluster",
            ),
            models.CheckConstraint(condition=models.Q(clean_scans__gte=1), name="one_clean_scan_at_least"),
            models.CheckConstraint(
                condition=models.Q(every_seconds=None) | models.Q(every_seconds__gte=10),
                name="not_more_than_every_10_s",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Connector(models.Model):
    """The connector of a Debezium source, and the database that it reads."""

    source = models.OneToOneField(Source, on_delete=models.CASCADE, related_name="connector")
    connect_url = models.CharField(max_length=2048)
    connect_user = models.CharField(max_length=255, blank=True)
    connect_secret = models.CharField(max_length=64, blank=True)
    name = models.CharField(max_length=255)
    database_host = models.CharField(max_length=255, blank=True, help_text="empty: the catalog isn't read")
    database_port = models.PositiveIntegerField(default=5432)
    database_name = models.CharField(max_length=63, blank=True)
    database_user = models.CharField(max_length=63, blank=True)
    database_secret = models.CharField(max_length=64, blank=True)
    database_tls = models.BooleanField(default=True)

    def __str__(self) -> str:
        return self.name


class Topic(models.Model):
    """A topic of a source: its settings in the cluster, how far it was read, and whose schemas it carries."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="topics")
    name = models.CharField(max_length=249)
    partitions = models.PositiveIntegerField(default=0)
    cluster_id = models.CharField(
        max_length=36, blank=True, help_text="the cluster's id of the topic; a recreated topic has another"
    )
    compacted = models.BooleanField(default=False)
    retention_ms = models.BigIntegerField(null=True, help_text="-1: unlimited; null: unknown")
    retention_bytes = models.BigIntegerField(null=True)
    positions = models.JSONField(default=dict, help_text="partition → the next offset to read")
    read_from = models.JSONField(default=dict, help_text="partition → the offset since which every message was read")
    strategies = models.JSONField(default=dict, help_text="side → subject name strategies found in the data")
    subjects = models.JSONField(default=dict, help_text="side → names of the subjects that its messages belong to")
    message_types = models.JSONField(
        default=dict, help_text="side → subject → Protobuf message type → first and last time it was seen"
    )
    tables = models.JSONField(default=list, help_text="[database, schema, table] whose changes it carried")
    last_rows = models.JSONField(default=dict, help_text="fields and table of its newest change events")
    messages = models.PositiveBigIntegerField(default=0, help_text="read so far, by all scans")
    problem = models.TextField(blank=True, help_text="why the last scan couldn't read it")
    volume = models.JSONField(default=dict, help_text="start, hours, end: messages by hour, as TopicVolume has them")
    discovered_at = models.DateTimeField(auto_now_add=True)
    checked_at = models.DateTimeField(null=True, help_text="when a scan last asked for its offsets")
    read_at = models.DateTimeField(null=True, help_text="when a scan last read messages of it")
    gone_at = models.DateTimeField(null=True, help_text="since when the cluster no longer has it")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "name"], name="one_topic")]

    def __str__(self) -> str:
        return self.name


class SchemaUse(models.Model):
    """Messages of one partition with a schema's mark, over all scans: they show whether a version is in use."""

    topic = models.ForeignKey(Topic, on_delete=models.CASCADE, related_name="uses")
    side = models.CharField(max_length=5)
    framing = models.CharField(max_length=12)
    mark = models.CharField(max_length=512)
    schema_id = models.BigIntegerField(
        null=True, db_index=True, help_text="the schema id that the mark means, if known"
    )
    partition = models.PositiveIntegerField()
    messages = models.PositiveBigIntegerField()
    undecodable = models.PositiveBigIntegerField(default=0)
    bytes = models.PositiveBigIntegerField()
    first_offset = models.BigIntegerField()
    last_offset = models.BigIntegerField()
    first_time = models.DateTimeField()
    last_time = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["topic", "side", "framing", "mark", "partition"], name="one_use"),
            models.CheckConstraint(condition=models.Q(side__in=SIDES), name="known_use_side"),
            models.CheckConstraint(condition=models.Q(framing__in=FRAMINGS), name="known_framing"),
        ]

    def __str__(self) -> str:
        return f"{self.framing} {self.mark} in {self.topic_id}"


class FieldStatistic(models.Model):
    """A field of decoded messages on one day: the baseline for later days. Only masked values."""

    topic = models.ForeignKey(Topic, on_delete=models.CASCADE, related_name="fields")
    side = models.CharField(max_length=5)
    framing = models.CharField(max_length=12, blank=True)
    mark = models.CharField(max_length=512, blank=True)
    path = models.TextField()
    day = models.DateField()
    messages = models.PositiveBigIntegerField()
    present = models.PositiveBigIntegerField()
    nulls = models.PositiveBigIntegerField()
    kinds = models.JSONField(default=dict)
    values = models.JSONField(default=dict)
    distinct = models.PositiveBigIntegerField(null=True)
    minimum = models.TextField(blank=True)
    maximum = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["topic", "side", "framing", "mark", "path", "day"], name="one_field_a_day")
        ]

    def __str__(self) -> str:
        return f"{self.path} on {self.day}"


class ScanQuerySet(RegistryScopedQuerySet["Scan"]):
    """Scans: visible with their source."""

    registry_name = "source__registry__name"


class Scan(models.Model):
    """One scan of a source. Its worker holds a running one by a lease and renews it."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="scans")
    state = models.CharField(max_length=10, default="queued")
    queued_at = models.DateTimeField(auto_now_add=True)
    queued_by = models.TextField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    postponed = models.PositiveSmallIntegerField(
        default=0, help_text="attempts that ended because a server was unavailable"
    )
    retry_at = models.DateTimeField(null=True, blank=True, help_text="no attempt before then: a server was unavailable")
    tag = models.CharField(max_length=64, blank=True, help_text="the Spark tag that interrupts its work")
    phase = models.CharField(max_length=100, blank=True)
    progress_done = models.PositiveIntegerField(default=0)
    progress_total = models.PositiveIntegerField(default=0)
    read = models.JSONField(
        null=True, blank=True, help_text="what was read: positions, messages, rows; null until done"
    )
    detector = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="the version of the detector; null: versions were not stored yet"
    )
    error = models.TextField(blank=True)

    objects = ScanQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["source"], condition=models.Q(state__in=("queued", "running")), name="one_scan_at_a_time"
            ),
            models.CheckConstraint(condition=models.Q(state__in=SCAN_STATES), name="known_scan_state"),
            models.CheckConstraint(
                condition=~models.Q(state="running") | models.Q(lease_until__isnull=False), name="running_has_a_lease"
            ),
        ]

    def __str__(self) -> str:
        return f"scan {self.pk} of {self.source_id}: {self.state}"


class FindingQuerySet(SubjectScopedQuerySet["Finding"]):
    """Findings."""

    registry_name = "source__registry__name"


class Finding(models.Model):
    """A finding: one row until clean scans resolve it, however often it is seen."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="findings")
    topic = models.ForeignKey(Topic, on_delete=models.SET_NULL, null=True, blank=True, related_name="findings")
    fingerprint = models.CharField(max_length=64)
    rule = models.CharField(max_length=64)
    severity = models.CharField(max_length=8)
    sentence = models.TextField()
    remedy = models.TextField()
    location = models.TextField()
    subject_name = models.TextField(blank=True, db_index=True, help_text="the affected subject, if there is one")
    evidence = models.JSONField()
    state = models.CharField(max_length=12, default="open")
    count = models.PositiveBigIntegerField(default=1)
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()
    opened_at = models.DateTimeField(null=True, blank=True, help_text="when it last opened again after it was resolved")
    detector = models.PositiveSmallIntegerField(null=True, blank=True, help_text="the detector that found it first")
    rebaselined_from = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        help_text="the detector of the scans before, if a newer detector caused the finding",
    )
    first_scan = models.ForeignKey(Scan, on_delete=models.SET_NULL, null=True, related_name="+")
    last_scan = models.ForeignKey(Scan, on_delete=models.SET_NULL, null=True, related_name="+")
    acknowledged_by = models.TextField(blank=True)
    acknowledged_reason = models.TextField(blank=True)
    acknowledged_until = models.DateTimeField(null=True, blank=True, help_text="when it reopens")
    assigned_to = models.TextField(blank=True)
    muted = models.BooleanField(default=False, help_text="a mute hides it: stored and counted, but not listed as open")
    cause = models.TextField(blank=True, help_text="the likely cause, from the evidence")
    cause_subject = models.TextField(blank=True, help_text="the subject whose version the cause names")
    cause_group = models.TextField(blank=True, help_text="the same text for all findings with one cause; empty: alone")
    clean_scans = models.PositiveSmallIntegerField(
        default=0, help_text="scans in a row that could have seen it and did not"
    )
    reopened = models.PositiveIntegerField(default=0)
    resolved_at = models.DateTimeField(null=True, blank=True)

    objects = FindingQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "fingerprint"], name="one_finding"),
            models.CheckConstraint(condition=models.Q(state__in=FINDING_STATES), name="known_finding_state"),
            models.CheckConstraint(condition=models.Q(severity__in=SEVERITIES), name="known_severity"),
            models.CheckConstraint(
                condition=~models.Q(state="acknowledged") | ~models.Q(acknowledged_reason=""),
                name="acknowledged_with_a_reason",
            ),
            models.CheckConstraint(
                condition=models.Q(rebaselined_from=None) | models.Q(detector__gt=models.F("rebaselined_from")),
                name="rebaselined_by_a_newer_detector",
            ),
        ]
        indexes = [models.Index(fields=["state", "-last_seen"], name="findings_inbox")]

    def __str__(self) -> str:
        return f"{self.rule} at {self.location}"


MOST_RANGES: Final = 10_000  # that a finding keeps


class FindingRange(models.Model):
    """Messages of a finding in one partition, from the first offset to the last, without others in between."""

    finding = models.ForeignKey(Finding, on_delete=models.CASCADE, related_name="ranges", db_index=False)
    partition = models.PositiveIntegerField()
    first_offset = models.BigIntegerField()
    last_offset = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["finding", "partition", "first_offset"], name="one_range")]

    def __str__(self) -> str:
        return f"{self.partition}@{self.first_offset}–{self.last_offset} of {self.finding_id}"


class MuteQuerySet(RegistryScopedQuerySet["Mute"]):
    """Mutes: their patterns may match any subject."""


class Mute(models.Model):
    """Shell patterns of findings that are hidden for now; an empty pattern means any."""

    registry = models.ForeignKey("subjects.Registry", on_delete=models.CASCADE, related_name="mutes")
    rule = models.CharField(max_length=64, blank=True)
    subject = models.CharField(max_length=512, blank=True)
    location = models.CharField(max_length=1024, blank=True)
    reason = models.TextField()
    until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.TextField()

    objects = MuteQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~models.Q(reason=""), name="muted_with_a_reason"),
            models.CheckConstraint(
                condition=~models.Q(rule="", subject="", location=""), name="a_mute_names_something"
            ),
        ]

    def __str__(self) -> str:
        return " ".join(filter(None, (self.rule, self.subject, self.location)))
