"""What becomes of a file that a form sends: it is held in memory, and no more of it than its form needs."""

from __future__ import annotations

from io import BytesIO
from typing import Any, Final

from django.conf import settings
from django.core.files.uploadedfile import InMemoryUploadedFile
from django.core.files.uploadhandler import FileUploadHandler

from registry.subjects.import_export.export_file import MAX_SENT

#: addresses whose files may be larger than a schema, by their names
LARGER: Final = {"ui:registry_import": MAX_SENT}


class SmallFileHandler(FileUploadHandler):
    """Keeps as many bytes of a request's files together as a schema may have, or its address takes, and drops the rest.

    A file's `size` says how large it was: one that is larger than what was kept is refused by whoever asked for it.
    """

    def __init__(self, request: Any = None) -> None:
        super().__init__(request)
        match = getattr(request, "resolver_match", None)
        self._left = LARGER.get(match.view_name if match else "", settings.SCHEMA_MAX_BYTES)
        self._buffer = BytesIO()

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Begin with another file."""
        super().new_file(*args, **kwargs)
        self._buffer = BytesIO()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Keep what there is still room for."""
        data = raw_data[: self._left]
        self._left -= len(data)
        self._buffer.write(data)

    def file_complete(self, file_size: int) -> InMemoryUploadedFile:
        """The file with its true size."""
        self._buffer.seek(0)
        return InMemoryUploadedFile(
            file=self._buffer,
            field_name=self.field_name,
            name=self.file_name,
            content_type=self.content_type,
            size=file_size,
            charset=self.charset,
            content_type_extra=self.content_type_extra,
        )
