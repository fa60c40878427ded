"""The table of all parts and steps."""

from __future__ import annotations

from dashboard.services import connect, kafka, postgres, programs, spark, valkey
from dashboard.services.part import Part, Step

VALKEY = Part("valkey", valkey.command, valkey.probe, replaced_by="REDIS_URL")
POSTGRES = Part("postgres", postgres.command, postgres.probe, postgres.prepare, replaced_by="DATABASE_URL")
KAFKA = Part("kafka", kafka.command, kafka.probe, kafka.prepare, replaced_by="KAFKA_BOOTSTRAP", seconds=120)
SPARK = Part("spark", spark.command, spark.probe, spark.prepare, replaced_by="SPARK_REMOTE", seconds=120)
# Connectors register schemas: those of an earlier run go on at once, and would fail without the registry.
CONNECT = Part(
    "connect",
    connect.command,
    connect.probe,
    connect.prepare,
    after=("kafka", "avro-endpoint"),
    replaced_by="CONNECT_URL",
    late=True,
    seconds=120,
)

MIGRATE = Step("migrate", programs.migrate_command, after=("valkey", "postgres"))
# Its lines are shown and kept nowhere: the passwords of the first start are among them.
PREPARE = Step("prepare", programs.prepare_command, after=("migrate",), relay=True)

WEB = Part("web", programs.web_command, programs.web_probe, after=("migrate",))
WORKERS = tuple(
    Part(f"worker-{queue}", programs.worker_command(queue, threads), programs.worker_probe(queue), after=("migrate",))
    for queue, threads in (("default", 4), ("scans", 2))
)
AVRO_ENDPOINT = Part(
    "avro-endpoint", programs.avro_endpoint_command, programs.avro_endpoint_probe, after=("web",), late=True
)
BEAT = Part("beat", programs.beat_command, programs.beat_probe, after=("migrate",))

SERVICES = (VALKEY, POSTGRES, KAFKA, SPARK, CONNECT)
PROGRAMS = (WEB, *WORKERS, BEAT)
# Those that a registry can do without: `up --without kafka,spark`.
OPTIONAL = ("kafka", "spark", "connect")
# Those that only run when they are asked for, `up --with connect`, or for the demo.
ON_DEMAND = ("connect",)
# What is of no use without another part, by that part's name.
ONLY_FOR = {"connect": "avro-endpoint"}

# Steps that nobody waits for. The first query of a cold Spark takes 13 s: let it be nobody's.
WARM_UP = Step("warm-up", programs.warm_up_command, after=("spark", "web"), vital=False, late=True)
DEMO = Step(
    "demo",
    programs.demo_command,
    after=(*(part.name for part in (*SERVICES, *PROGRAMS)), "prepare", "warm-up"),
    relay=True,
    vital=False,
    late=True,
    seconds=1800,
)
ALL: tuple[Part | Step, ...] = (*SERVICES, MIGRATE, PREPARE, *PROGRAMS, AVRO_ENDPOINT, WARM_UP, DEMO)
