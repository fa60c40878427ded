"""Whom Java trusts on the network: the authorities that this machine trusts.

A Java that a wheel brings along knows the public authorities alone. A machine behind a proxy that signs
connections itself has that proxy's authority among its own, and Python finds it there.
"""

from __future__ import annotations

import ssl
import warnings
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from cryptography.utils import CryptographyDeprecationWarning

# Guards nothing: Java wants a password to check the file by, and what is inside is public.
PASSWORD = "trusted"  # noqa: S105


def trust_options(folder: Path) -> list[str]:
    """Java's options for a trust store of the machine's authorities, written into `folder`.

    Empty where Python finds no authorities either (its own default on some systems): then Java's own count.
    """
    found = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not found:
        return []
    with warnings.catch_warnings():
        # Some old authorities have serial numbers that today's rules forbid; that is theirs to mend.
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        loaded = [x509.load_der_x509_certificate(certificate) for certificate in found]
    trusted = [pkcs12.PKCS12Certificate(each, f"authority-{number}".encode()) for number, each in enumerate(loaded)]
    store = folder / "trusted.p12"
    store.write_bytes(pkcs12.serialize_java_truststore(trusted, BestAvailableEncryption(PASSWORD.encode())))
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=PKCS12",
        f"-Djavax.net.ssl.trustStorePassword={PASSWORD}",
    ]
