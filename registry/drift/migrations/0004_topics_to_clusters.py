"""Each source that was a topic becomes a cluster, named after its servers, and a source that includes just that topic."""

from typing import Any

from django.db import migrations

PATTERN_SIGNS = str.maketrans({"[": "[[]", "*": "[*]", "?": "[?]"})


def to_clusters(apps: Any, schema_editor: Any) -> None:
    """Topics become sources of a cluster; positions move to the topic's row, findings stay and name the topic."""
    clusters, sources, topics, findings = (
        apps.get_model("drift", name).objects for name in ("Cluster", "Source", "Topic", "Finding")
    )
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT set_config('schemadesk.why', 'topics become sources of clusters', true)")
    taken = set(sources.exclude(kind="kafka_topic").values_list("registry_id", "kind", "name"))
    for source in sources.filter(kind="kafka_topic").order_by("pk"):
        topic = topics.create(source=source, name=source.name, positions=source.positions)
        findings.filter(source=source).update(topic=topic)
        source.cluster = _cluster(clusters, source)
        source.include = [source.name.translate(PATTERN_SIGNS)]
        source.kind, source.name = "kafka", _free(source, taken)
        source.save(update_fields=["cluster", "include", "kind", "name"])


def _cluster(clusters: Any, source: Any) -> Any:
    """The cluster at the source's servers, made at its first source."""
    known = clusters.filter(bootstrap=source.bootstrap).first()
    if known is not None:
        return known
    name, number = source.bootstrap[:128], 1
    while clusters.filter(name=name).exists():
        number += 1
        name = f"{source.bootstrap[:120]} {number}"
    return clusters.create(name=name, bootstrap=source.bootstrap, created_by=source.created_by)


def _free(source: Any, taken: set[tuple[int, str, str]]) -> str:
    """The source's name, with its servers where two clusters have a topic of that name."""
    name = source.name
    if (source.registry_id, "kafka", name) in taken:
        name = f"{source.name} at {source.bootstrap}"[:1024]
    taken.add((source.registry_id, "kafka", name))
    return name


class Migration(migrations.Migration):
    """Data alone. The way back is open only where no source of topics is left: one may include many topics now."""

    dependencies = [("drift", "0003_clusters")]
    operations = [migrations.RunPython(to_clusters, migrations.RunPython.noop)]
