"""The options that the server itself declares, for files that come as descriptors without what they import."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from registry.formats.protobuf.compiler import MAIN, compile_files
from registry.formats.protobuf.descriptors import pool_of
from registry.formats.protobuf.options import Options

#: where the options are declared; every schema can import it
META: Final = "confluent/meta.proto"


@lru_cache(maxsize=1)
def meta_files() -> tuple[FileDescriptorProto, ...]:
    """The descriptors of META and of what it imports, in that order."""
    return compile_files({MAIN: f'syntax = "proto3"; import "{META}";'})[:-1]


@lru_cache(maxsize=1)
def known_options() -> Options:
    """Reads options with those of META known."""
    return Options(pool_of(meta_files()))
