"""Streaming queries with the history of their state, where their checkpoints are, and checks of planned state."""

from __future__ import annotations

from django.contrib.postgres.indexes import HashIndex
from django.db import models
from django.db.models.functions import MD5

from registry.access.permission_filters import RegistryScopedQuerySet

VERDICTS = ("safe", "loses data", "silently wrong", "fails later", "fails at start", "not checked")


class StateCheck(models.Model):
    """What a restart would have done to a checkpoint's state at the time of the check. Never changed."""

    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.TextField()
    checkpoint = models.CharField(max_length=4096, help_text="the checkpoint's path")
    query_id = models.CharField(max_length=200)
    verdict = models.CharField(max_length=32)
    plan = models.TextField(help_text="the plan as it was sent")
    report = models.JSONField(help_text="docs/reference/state-check.schema.json")

    class Meta:
        ordering = ["-id"]
        constraints = [models.CheckConstraint(condition=models.Q(verdict__in=VERDICTS), name="known_state_verdict")]

    def __str__(self) -> str:
        return f"check {self.pk} of {self.checkpoint}: {self.verdict}"


class CheckpointStore(models.Model):
    """The object store of a checkpoint, and the credentials for it.

    Typed fields only: free options of a file system can reach other hosts and read files. `secret` names the secret
    key, which is stored elsewhere; without credentials the bucket must be public.
    """

    source = models.OneToOneField("drift.Source", on_delete=models.CASCADE, related_name="store")
    endpoint = models.CharField(max_length=2048, help_text="http(s)://host[:port]")
    region = models.CharField(max_length=40, default="us-east-1")
    access_key_id = models.CharField(max_length=128, blank=True)
    secret = models.CharField(max_length=64, blank=True, help_text="the name under which the secret key is kept")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(access_key_id="", secret="")
                | (models.Q(access_key_id__gt="") & models.Q(secret__gt="")),
                name="both_halves_of_the_credentials",
            )
        ]

    def __str__(self) -> str:
        return self.endpoint


class StreamQueryQuerySet(RegistryScopedQuerySet["StreamQuery"]):
    """A queryset of streaming queries, whose state isn't of a single subject."""


class StreamQuery(models.Model):
    """A streaming query as a scan read it from its checkpoint: how it runs, what it reads, and its limits."""

    source = models.ForeignKey("drift.Source", on_delete=models.CASCADE, related_name="queries")
    registry = models.ForeignKey("subjects.Registry", on_delete=models.CASCADE, related_name="queries")
    path = models.CharField(max_length=4096)
    query_id = models.CharField(max_length=200)
    provider = models.CharField(max_length=200, blank=True)
    encoding = models.CharField(max_length=64)
    last_planned_batch = models.BigIntegerField(null=True)
    last_committed_batch = models.BigIntegerField(null=True)
    last_batch_at = models.DateTimeField(null=True)
    allowed_value_schemas = models.PositiveIntegerField()
    allowed_schema_files = models.PositiveIntegerField()
    operators = models.JSONField(default=list, help_text="number, name, partitions, encoding, schema files, timers")
    runs = models.JSONField(default=list, help_text="batches in a row that ran with the same settings")
    problems = models.JSONField(default=list, help_text="what was found wrong in the checkpoint")
    first_seen = models.DateTimeField(auto_now_add=True)
    scanned_at = models.DateTimeField(help_text="when a scan last read the checkpoint's files")

    objects = StreamQueryQuerySet.as_manager()

    class Meta:
        ordering = ["path", "id"]
        constraints = [models.UniqueConstraint("source", MD5("path"), name="one_query")]

    def __str__(self) -> str:
        return self.path


class QueryInput(models.Model):
    """A topic that a query reads, and a subject of its messages, "" if unknown."""

    query = models.ForeignKey(StreamQuery, on_delete=models.CASCADE, related_name="inputs")
    topic = models.CharField(max_length=249)
    side = models.CharField(max_length=5, blank=True)
    context = models.CharField(max_length=255, blank=True)
    subject = models.CharField(max_length=1024, blank=True)

    class Meta:
        ordering = ["topic", "side", "subject"]
        constraints = [
            models.UniqueConstraint("query", "topic", "side", "context", MD5("subject"), name="one_query_input")
        ]
        indexes = [HashIndex(fields=["subject"], name="readers_of_a_subject")]

    def __str__(self) -> str:
        return f"{self.topic}: {self.subject}"


class RunningDescription(models.Model):
    """What a query says of itself after a start, as `schemadesk_spark.describe` writes it. Never changed."""

    query = models.ForeignKey(StreamQuery, on_delete=models.CASCADE, related_name="descriptions")
    sent_at = models.DateTimeField(auto_now_add=True)
    sent_by = models.TextField()
    text = models.TextField(help_text="the description as laid out JSON in ASCII, its keys in order")

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"description {self.pk} of {self.query_id}"


class StateVariable(models.Model):
    """A state variable, or the state of a built-in operator. `rows` and `fields` are from the last scan of its rows."""

    query = models.ForeignKey(StreamQuery, on_delete=models.CASCADE, related_name="variables")
    operator = models.PositiveIntegerField()
    name = models.CharField(max_length=500)
    label = models.CharField(max_length=500)
    kind = models.CharField(max_length=32)
    ttl = models.BooleanField(default=False)
    encoding = models.CharField(max_length=64)
    why_fixed = models.TextField(blank=True, help_text="why its schemas can't evolve; empty where they can")
    value_schemas_used = models.PositiveIntegerField(default=0)
    removed_at = models.BigIntegerField(null=True, help_text="the first batch without it")
    rows = models.PositiveBigIntegerField(null=True, help_text="entries as of `rows_batch`; null: not read")
    keys = models.PositiveBigIntegerField(null=True)
    bytes = models.PositiveBigIntegerField(null=True, help_text="of the values as they are read, not on disk")
    rows_batch = models.BigIntegerField(null=True)
    rows_at = models.DateTimeField(null=True)
    rows_problem = models.TextField(blank=True, help_text="why the rows couldn't be read")
    fields = models.JSONField(default=list, help_text="path, rows, nulls, bytes, masked minimum and maximum")
    expiry = models.JSONField(default=dict, help_text="of entries with time to live: earliest, latest, without")

    class Meta:
        ordering = ["operator", "name"]
        constraints = [models.UniqueConstraint(fields=["query", "operator", "name"], name="one_state_variable")]

    def __str__(self) -> str:
        return self.name


class StateSchema(models.Model):
    """A version of a state variable's schemas. `start` counts the application starts that wrote a schema file."""

    variable = models.ForeignKey(StateVariable, on_delete=models.CASCADE, related_name="schemas")
    version = models.PositiveIntegerField()
    schema_id = models.IntegerField(help_text="Spark's number of the value schema, from 0")
    batch = models.BigIntegerField(null=True, help_text="the first batch written with it; null: Spark keeps no history")
    start = models.PositiveIntegerField(null=True)
    written_at = models.DateTimeField(null=True)
    file = models.CharField(max_length=500)
    content_hash = models.CharField(max_length=64)
    key_schema = models.TextField(help_text="StructType JSON")
    value_schema = models.TextField(help_text="StructType JSON")
    map_key_schema = models.TextField(blank=True, help_text="StructType JSON of a map's keys")
    avro_schema = models.TextField(blank=True, help_text="what Spark derives from the value schema")
    why_no_avro = models.TextField(blank=True)

    class Meta:
        ordering = ["version"]
        constraints = [
            models.UniqueConstraint(fields=["variable", "version"], name="one_state_schema"),
            models.UniqueConstraint(fields=["variable", "file", "content_hash"], name="one_state_schema_a_file"),
        ]

    def __str__(self) -> str:
        return f"version {self.version}"


class CarriedVersion(models.Model):
    """A subject's version whose fields a state schema has: the one that the schema was most likely taken from."""

    schema = models.ForeignKey(StateSchema, on_delete=models.CASCADE, related_name="carried")
    context = models.CharField(max_length=255)
    subject = models.CharField(max_length=1024)
    version = models.PositiveIntegerField()
    path = models.CharField(max_length=1000, blank=True, help_text="the struct in the value; empty: the value itself")
    fields = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint("schema", "context", MD5("subject"), MD5("path"), name="one_version_carried")
        ]
        indexes = [HashIndex(fields=["subject"], name="carriers_of_a_version")]

    def __str__(self) -> str:
        return f"{self.subject} version {self.version}"


class QueryRun(models.Model):
    """A run of a query, from its start to its end, as the query's listener reported it."""

    query = models.ForeignKey(StreamQuery, on_delete=models.CASCADE, related_name="reported_runs")
    run_id = models.UUIDField(help_text="Spark's id, new at each start")
    name = models.CharField(max_length=200, blank=True, help_text="of the query in its job")
    is_restart = models.BooleanField()
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField(help_text="the time of the newest event")
    ended_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=200, blank=True, help_text="Spark's error class or the exception's class")
    last_batch = models.BigIntegerField(default=-1, help_text="batches up to it are counted, and never twice")
    dropped = models.PositiveBigIntegerField(default=0, help_text="events that the listener had no room for")

    class Meta:
        ordering = ["-started_at", "-id"]
        constraints = [models.UniqueConstraint(fields=["query", "run_id"], name="one_run_of_a_query")]

    def __str__(self) -> str:
        return str(self.run_id)


class ProgressPoint(models.Model):
    """The batches of a query that ended in a minute or in an hour: the sum of their rows, and the highest of the rest."""

    query = models.ForeignKey(StreamQuery, on_delete=models.CASCADE, related_name="progress")
    seconds = models.PositiveSmallIntegerField(help_text="60 or 3600")
    at = models.DateTimeField(help_text="the beginning")
    batches = models.PositiveIntegerField(default=0)
    rows = models.PositiveBigIntegerField(default=0)
    duration_ms = models.PositiveBigIntegerField(default=0, help_text="of a batch")
    watermark_delay_ms = models.PositiveBigIntegerField(null=True, help_text="null: no watermark")
    lag = models.PositiveBigIntegerField(null=True, help_text="messages of Kafka to be read; null: unknown")
    operators = models.JSONField(default=list, help_text="name, rows, bytes and partitions, by Spark's number")

    class Meta:
        ordering = ["at"]
        constraints = [models.UniqueConstraint(fields=["query", "seconds", "at"], name="one_progress_point")]

    def __str__(self) -> str:
        return f"{self.at} ({self.seconds} s)"
