"""What can go wrong while the parts are set up; all of them are `Unavailable`.

Unavailable
└── ServiceError
    ├── AlreadyRunning     another `up` holds the data folder
    ├── PortTaken          an address that was asked for is in use
    ├── JarMismatch        a jar isn't the one that jars.lock names
    ├── PartMissing        a program that a part needs isn't on this machine
    └── PartFailed         a part doesn't start, or keeps ending
"""

from __future__ import annotations

from registry.errors import Unavailable


class ServiceError(Unavailable):
    """A part of the product could not be set up on this machine."""


class AlreadyRunning(ServiceError):
    """Another `up` runs on the same data folder; the message names its process id and address."""


class PortTaken(ServiceError):
    """The port that was asked for is in use by another program."""


class JarMismatch(ServiceError):
    """A jar's SHA-256 is not the one in jars.lock; nothing of it was kept."""


class PartMissing(ServiceError):
    """A program that a part needs is neither installed with the project nor on PATH."""


class PartFailed(ServiceError):
    """A part did not become ready, or kept ending; the message carries the end of its log."""
