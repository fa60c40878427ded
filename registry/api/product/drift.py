"""The product's own API: clusters, sources, scans, deployments and streaming queries."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from typing import Any, Final

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import Direction, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.permission_filters import require_extent
from registry.access.roles import require
from registry.api.product.base import ProductView, WholeNumberField
from registry.api.product.description import body_of, either, many, shape
from registry.drift import selectors, services
from registry.drift.models import MAX_LABEL, MAX_URL
from registry.drift.selectors import ScanInfo, checkpoint_sources
from registry.drift.sources import CONFIG, SOURCES, SourceField, SourceKind
from registry.drift.tasks import interrupt_scan, run_scan
from registry.streams import selectors as streams
from registry.streams.descriptions import KeptDescription, RunningInfo, find_query, keep_description, list_descriptions
from registry.streams.services import check_document, discover, discovery_dict


@cache
def config_serializer(kind: SourceKind) -> type[serializers.Serializer[Any]]:
    """The body of the values of a kind's own fields; secrets by the names they are kept under."""
    title = "".join(word.capitalize() for word in f"{kind.name}_{CONFIG}".split("_"))
    name = title if kind.config_name == CONFIG else kind.config_name.capitalize()
    return type(f"{name}Serializer", (serializers.Serializer,), {item.name: _field(item) for item in kind.fields})


def _field(item: SourceField) -> serializers.Field[Any, Any, Any, Any]:
    values: dict[str, Any] = {"required": item.required, "help_text": item.help or None}
    if isinstance(item.default, bool):
        return serializers.BooleanField(**values)
    if isinstance(item.default, int):
        return WholeNumberField(min_value=item.least, max_value=item.most, **values)
    return serializers.CharField(max_length=item.longest, allow_blank=not item.required, **values)


class ConfigField(serializers.DictField):
    """The values of the fields that the source's kind declares, which the service checks."""


class ConfigFieldSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """Describes them: those of one of the kinds."""

    target_class = ConfigField

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Direction) -> dict[str, Any]:
        """One of the kinds' bodies."""
        kinds = [kind for kind in SOURCES.values() if kind.fields and kind.config_name == CONFIG]
        return {"oneOf": [auto_schema.resolve_serializer(config_serializer(kind), direction).ref for kind in kinds]}


def config_fields() -> dict[str, serializers.Field[Any, Any, Any, Any]]:
    """The fields of a source's body by which kinds take the values of their own fields."""
    kinds = [kind for kind in SOURCES.values() if kind.fields]
    return {
        kind.config_name: ConfigField(required=False)
        if kind.config_name == CONFIG
        else config_serializer(kind)(required=False, allow_null=True)
        for kind in kinds
    }


StoreSerializer: Final = config_serializer(SOURCES["state_store"])


class PlannedStateSerializer(serializers.Serializer[Any]):
    """The path or address of a checkpoint, and the planned state schemas: a JSON object, or its text."""

    checkpoint = serializers.CharField(max_length=4096)
    store = StoreSerializer(required=False, allow_null=True, default=None, help_text="how to reach a remote checkpoint")
    plan = serializers.JSONField(
        help_text='{"variables": [{"name", "kind", "value_schema", "user_key_schema", "key_schema", "ttl"}], "removed",'
        ' "settings", "language", "operator", "time_mode", "output_mode", "api", "operators"}; schemas are Spark DDL or'
        " StructType JSON"
    )


#: `report` is docs/reference/state-check.schema.json
STATE_CHECK: Final = shape(
    "StateCheck", streams.StateCheckInfo, without=("checkpoint", "query_id", "plan", "text", "markdown"), url=str
)
_OPERATOR: Final = shape("FoundOperator", operator=int, name=str, description=str, variables=many(str))
_READ: Final = shape("ReadCheckpoint", operators=many(_OPERATOR), last_committed_batch=int | None)
CHECKPOINT: Final = shape(
    "FoundCheckpoint", path=str, source=int | None, refused=str | None, checkpoint=either(_READ, None)
)
BUDGET: Final = shape("Budget", streams.BudgetInfo, "left")
QUERY: Final = shape(
    "Query",
    streams.QueryInfo,
    without=("source_id",),
    source=int,
    url=str,
    worst=either(BUDGET, None),
    inputs=many(shape("QueryInput", topic=str, side=str, subject=str | None)),
)
_SCHEMA: Final = shape(
    "StateSchema", streams.SchemaInfo, carried=many(shape("Carried", streams.CarriedInfo, subject=str))
)
VARIABLE: Final = shape("StateVariable", streams.VariableInfo, budget=either(BUDGET, None), schemas=many(_SCHEMA))
DESCRIPTION: Final = shape("QueryDescription", RunningInfo, without=("text",), description=dict[str, Any])
KEPT: Final = shape("KeptDescription", KeptDescription, url=str)
SCAN: Final = shape("Scan", ScanInfo, "verdict")
REPORTED: Final = shape("ReportedDeployment", deployment=int, note=str)


class StateChecks(ProductView):
    """`/api/v1/state-checks`."""

    @extend_schema(request=PlannedStateSerializer, responses={201: STATE_CHECK})
    def post(self, request: Request) -> Response:
        """Check what a restart with these state schemas would do to a checkpoint.

        Nothing is started; the report is stored.
        """
        values = self.valid(PlannedStateSerializer)
        number = check_document(by=self.actor, **values)
        return Response(_state_check(number), status=201)


class StateCheckOne(ProductView):
    """`/api/v1/state-checks/{id}`."""

    @extend_schema(responses=STATE_CHECK)
    def get(self, request: Request, check_id: int) -> Response:
        """Get a stored check."""
        require(self.actor, "schema.read")
        return Response(_state_check(check_id))


def _state_check(number: int) -> dict[str, Any]:
    return body_of(STATE_CHECK, streams.get_state_check(number), url=f"/ui/state-checks/{number}")


MOST = 500


class QueryPageSerializer(serializers.Serializer[Any]):
    """The page; `after` is the last id of the previous one, and `limit` is at most 500."""

    after = WholeNumberField(required=False, default=None, allow_null=True, min_value=1, max_value=2**62)
    limit = WholeNumberField(min_value=1, max_value=MOST, required=False, default=100)


class DiscoverySerializer(serializers.Serializer[Any]):
    """The folder or address to search. The caller needs permission to add sources to the registry."""

    registry = serializers.CharField(max_length=255)
    path = serializers.CharField(max_length=4096)
    store = StoreSerializer(required=False, allow_null=True, default=None, help_text="how to reach an address")


class Discoveries(ProductView):
    """`/api/v1/checkpoints/discoveries`."""

    @extend_schema(
        request=DiscoverySerializer,
        responses=shape(
            "Discovery", found=many(CHECKPOINT), folders=int, ended_early=str | None, passed_over=many(str)
        ),
    )
    def post(self, request: Request) -> Response:
        """Find the checkpoints at and below the path, and which of them are sources already. Nothing is stored."""
        values = self.valid(DiscoverySerializer)
        done = discover(path=values["path"], registry=values["registry"], store=values["store"], by=self.actor)
        return Response(discovery_dict(done, checkpoint_sources(values["registry"])))


class Queries(ProductView):
    """`/api/v1/queries`."""

    @extend_schema(parameters=[QueryPageSerializer], responses=many(QUERY))
    def get(self, request: Request) -> Response:
        """List the streaming queries that scans found in registries that the caller can read, fullest budget first."""
        require_extent(self.actor, "schema.read")
        page = self.filters_of(QueryPageSerializer, request.query_params.dict())
        return Response([query_body(query) for query in streams.list_queries(by=self.actor, **page)])


class DescribedQuerySerializer(serializers.Serializer[Any]):
    """A query: its checkpoint's path or folder name, or Spark's id."""

    query = serializers.CharField(max_length=4096)
    registry = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)


class DescriptionSerializer(DescribedQuerySerializer):
    """What `schemadesk_spark.describe` says of a query after its start.

    `query` can be left out if a StreamingQuery was described: the description has its id.
    """

    query = serializers.CharField(max_length=4096, required=False, default="", allow_blank=True)
    description = serializers.JSONField()


class QueryDescriptions(ProductView):
    """`/api/v1/query-descriptions`."""

    @extend_schema(parameters=[DescribedQuerySerializer], responses=many(DESCRIPTION))
    def get(self, request: Request) -> Response:
        """List the descriptions that a running query sent, newest first."""
        row = find_query(by=self.actor, **self.filters_of(DescribedQuerySerializer, request.query_params.dict()))
        return Response([body_of(DESCRIPTION, info, description=info.values) for info in list_descriptions(row.pk)])

    @extend_schema(request=DescriptionSerializer, responses={200: KEPT, 201: KEPT})
    def post(self, request: Request) -> Response:
        """Keep the description of a running query: 201 for a new one, 200 if it was sent before.

        Restart checks compare the next version with the newest one. The call is idempotent.
        """
        stored = keep_description(by=self.actor, **self.valid(DescriptionSerializer))
        body = body_of(KEPT, stored, url=f"/ui/queries/{stored.query}")
        return Response(body, status=201 if stored.is_new else 200)


class QueryVariables(ProductView):
    """`/api/v1/queries/{id}/variables`."""

    @extend_schema(responses=shape("QueryVariables", query=QUERY, variables=many(VARIABLE)))
    def get(self, request: Request, query_id: int) -> Response:
        """Get the state variables of a query, with every version of their schemas and statistics of their rows."""
        query = streams.get_query(query_id, by=self.actor)
        variables = [body_of(VARIABLE, variable) for variable in streams.variables_with_schemas(query_id)]
        return Response({"query": query_body(query), "variables": variables})


def query_body(query: streams.QueryInfo) -> dict[str, Any]:
    """A query as JSON values."""
    return body_of(QUERY, query, source=query.source_id, url=f"/ui/queries/{query.id}")


class ClusterFields(serializers.Serializer[Any]):
    """How to connect to a cluster. `secret` is the name of the secret with the password, never the password itself."""

    bootstrap = serializers.CharField(max_length=1024)
    security_protocol = serializers.CharField(max_length=16, required=False, default="PLAINTEXT")
    sasl_mechanism = serializers.CharField(max_length=16, required=False, default="", allow_blank=True)
    username = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    secret = serializers.CharField(max_length=64, required=False, default="", allow_blank=True)
    ca_pem = serializers.CharField(max_length=65_536, required=False, default="", allow_blank=True)


class ClusterSerializer(ClusterFields):
    """The cluster to connect."""

    name = serializers.CharField(max_length=128)


class SourceFields(serializers.Serializer[Any]):
    """How to scan a source. Omitted fields keep their values, or get their defaults in a new source."""

    context = serializers.CharField(max_length=255, required=False, allow_blank=True)  # type: ignore[assignment]  # a field of the body, not DRF's
    include = serializers.ListField(child=serializers.CharField(max_length=249), required=False, max_length=100)
    exclude = serializers.ListField(child=serializers.CharField(max_length=249), required=False, max_length=100)
    mode = serializers.CharField(max_length=12, required=False)
    every_seconds = WholeNumberField(required=False, allow_null=True)
    tail_messages = WholeNumberField(required=False)
    window_seconds = WholeNumberField(required=False)
    max_messages = WholeNumberField(required=False)
    max_bytes = WholeNumberField(required=False)
    max_seconds = WholeNumberField(required=False)
    clean_scans = WholeNumberField(required=False)
    keep_samples = serializers.BooleanField(required=False)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Also the fields that kinds of source declare, under the name that each has for them."""
        return super().get_fields() | config_fields()


class KindField(serializers.ChoiceField):
    """The name of a registered kind of source."""

    def __init__(self, **values: Any) -> None:
        super().__init__(choices=sorted(SOURCES), **values)


class SourceSerializer(SourceFields):
    """The source to add."""

    registry = serializers.CharField(max_length=255, required=False, default="")
    kind = KindField()
    name = serializers.CharField(max_length=1024)
    cluster = serializers.CharField(max_length=128, required=False, default="", allow_blank=True)


class Clusters(ProductView):
    """`/api/v1/clusters`."""

    @extend_schema(responses=many(selectors.ClusterInfo))
    def get(self, request: Request) -> Response:
        """List the clusters: all of them, or those with sources that the caller can read."""
        require_extent(self.actor, "schema.read")
        return Response([asdict(cluster) for cluster in selectors.list_clusters(self.actor)])

    @extend_schema(request=ClusterSerializer, responses={201: selectors.ClusterInfo})
    def post(self, request: Request) -> Response:
        """Connect a cluster. The cluster must be reachable."""
        values = self.valid(ClusterSerializer)
        services.connect_cluster(by=self.actor, **values)
        return Response(asdict(selectors.get_cluster(values["name"])), status=201)


class ClusterView(ProductView):
    """`/api/v1/clusters/{name}`."""

    @extend_schema(responses=selectors.ClusterInfo)
    def get(self, request: Request, name: str) -> Response:
        """Get a cluster."""
        require(self.actor, "schema.read")
        return Response(asdict(selectors.get_cluster(name)))

    @extend_schema(request=ClusterFields, responses=selectors.ClusterInfo)
    def put(self, request: Request, name: str) -> Response:
        """Change how to connect to the cluster. The cluster must be reachable."""
        services.update_cluster(name=name, by=self.actor, **self.valid(ClusterFields))
        return Response(asdict(selectors.get_cluster(name)))

    def delete(self, request: Request, name: str) -> Response:
        """Remove a cluster that no source uses."""
        services.remove_cluster(name=name, by=self.actor)
        return Response(status=204)


class Sources(ProductView):
    """`/api/v1/sources`."""

    @extend_schema(responses=many(selectors.SourceInfo))
    def get(self, request: Request) -> Response:
        """List the sources of registries that the caller can read, with their last scans.

        `registry` limits the list to one registry.
        """
        registry = request.query_params.get("registry", "")
        require_extent(self.actor, "schema.read", registry=registry)
        return Response([asdict(source) for source in selectors.list_sources(registry=registry, by=self.actor)])

    @extend_schema(request=SourceSerializer, responses={201: selectors.SourceInfo})
    def post(self, request: Request) -> Response:
        """Add a source, such as topics of a cluster or a checkpoint, and queue its first scan."""
        number = services.add_source(by=self.actor, **self.valid(SourceSerializer))
        run_scan.delay_on_commit(services.queue_scan(source_id=number, by=self.actor))
        return Response(asdict(selectors.get_source(number)), status=201)


class SourceView(ProductView):
    """`/api/v1/sources/{id}`."""

    @extend_schema(responses=shape("SourceWithTopics", selectors.SourceInfo, topic_list=many(selectors.TopicInfo)))
    def get(self, request: Request, source_id: int) -> Response:
        """Get a source with its topics."""
        source = selectors.get_source(source_id, by=self.actor)
        return Response(asdict(source) | {"topic_list": [asdict(topic) for topic in selectors.list_topics(source_id)]})

    @extend_schema(request=SourceFields, responses=selectors.SourceInfo)
    def patch(self, request: Request, source_id: int) -> Response:
        """Change how a source is scanned."""
        values = self.valid(SourceFields)
        services.update_source(source_id=source_id, by=self.actor, **values)
        return Response(asdict(selectors.get_source(source_id)))

    def delete(self, request: Request, source_id: int) -> Response:
        """Remove a source with its scans and findings."""
        services.remove_source(source_id=source_id, by=self.actor)
        return Response(status=204)


class Scans(ProductView):
    """`/api/v1/sources/{id}/scans`."""

    @extend_schema(responses=many(SCAN))
    def get(self, request: Request, source_id: int) -> Response:
        """List the scans of a source, newest first."""
        selectors.get_source(source_id, by=self.actor)
        return Response([body_of(SCAN, scan) for scan in selectors.list_scans(source_id)])

    @extend_schema(responses={202: shape("QueuedScan", scan=int)})
    def post(self, request: Request, source_id: int) -> Response:
        """Queue a scan. If one is queued or running already, the response names that one."""
        scan_id = services.queue_scan(source_id=source_id, by=self.actor)
        run_scan.delay_on_commit(scan_id)
        return Response({"scan": scan_id}, status=202)


class ScanView(ProductView):
    """`/api/v1/scans/{id}`."""

    @extend_schema(responses=SCAN)
    def get(self, request: Request, scan_id: int) -> Response:
        """Get a scan: its state, its progress, what it read, or why it failed."""
        return Response(body_of(SCAN, selectors.get_scan(scan_id, by=self.actor)))


class ScanCancel(ProductView):
    """`/api/v1/scans/{id}/cancel`."""

    @extend_schema(responses=SCAN)
    def post(self, request: Request, scan_id: int) -> Response:
        """Cancel a scan that is queued or running. The findings of earlier scans stay."""
        tag = services.cancel_scan(scan_id=scan_id, by=self.actor)
        if tag:
            interrupt_scan.delay_on_commit(tag)
        return Response(body_of(SCAN, selectors.get_scan(scan_id)))


class DeploymentSerializer(serializers.Serializer[Any]):
    """A deployment to the environment of `registry`.

    An empty pattern matches everything. `at` is its start, by default now.
    """

    registry = serializers.CharField(max_length=255)
    label = serializers.CharField(max_length=2 * MAX_LABEL)  # type: ignore[assignment]  # a field of the body
    at = serializers.DateTimeField(required=False, default=None, allow_null=True)
    url = serializers.CharField(required=False, default="", allow_blank=True, max_length=MAX_URL)
    subjects = serializers.CharField(required=False, default="", allow_blank=True, max_length=512)
    topics = serializers.CharField(required=False, default="", allow_blank=True, max_length=249)
    client = serializers.CharField(required=False, default="", allow_blank=True, max_length=255)


class DeploymentFilterSerializer(serializers.Serializer[Any]):
    """Filters; `before` is the cursor from another page."""

    registry = serializers.CharField(required=False, default="", allow_blank=True, max_length=255)
    label = serializers.CharField(required=False, default="", allow_blank=True, max_length=MAX_LABEL)  # type: ignore[assignment]  # a filter, not DRF's
    before = serializers.CharField(required=False, default="", allow_blank=True, max_length=40)
    limit = WholeNumberField(required=False, default=100, min_value=1, max_value=500)


class Deployments(ProductView):
    """`/api/v1/deployments`."""

    @extend_schema(
        parameters=[DeploymentFilterSerializer],
        responses=shape("DeploymentPage", deployments=many(selectors.DeploymentInfo), before=str),
    )
    def get(self, request: Request) -> Response:
        """List deployments by their start, newest first.

        `before` in the response is the cursor of the next page, "" on the last one.
        """
        parameters = request.query_params.dict()
        chosen = self.filters_of(DeploymentFilterSerializer, parameters)
        require(self.actor, "schema.read", registry=chosen["registry"])
        page = selectors.list_deployments(**chosen)
        return Response({"deployments": [asdict(row) for row in page.rows], "before": page.before})

    @extend_schema(request=DeploymentSerializer, responses={200: REPORTED, 201: REPORTED})
    def post(self, request: Request) -> Response:
        """Report a deployment: 201 for a new one, 200 if it was reported before. The call is idempotent.

        `note` says that its client isn't declared, so that no finding names the deployment; "" otherwise.
        """
        deployment = services.report_deployment(by=self.actor, **self.valid(DeploymentSerializer))
        return Response(
            {"deployment": deployment.id, "note": deployment.note}, status=201 if deployment.is_new else 200
        )
