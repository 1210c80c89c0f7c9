# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""The certificates of a server, which are read again when their files change."""

import logging
import os
import threading
from dataclasses import dataclass, field
from typing import Any

import grpc

from hookgate import logs


def credentials(cert: str | None, key: str | None, client_ca: str | None) -> grpc.ServerCredentials | None:
    """Returns the credentials of a server with these files, or None without files. It raises a ValueError or an OSError
    for files that cannot be used."""
    if not cert and not key and not client_ca:
        return None
    if not cert or not key:
        raise ValueError("TLS needs both tls_cert and tls_key; client_ca alone is not enough")
    files = _Files(cert, key, client_ca)
    fetch: Any = files.changed  # None, for what has not changed, is missing in the types of grpc
    return grpc.dynamic_ssl_server_credentials(files.read(), fetch, require_client_authentication=bool(client_ca))


@dataclass
class _Files:
    cert: str
    key: str
    client_ca: str | None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stamp: object = None

    def read(self) -> grpc.ServerCertificateConfiguration:
        """Reads the files. It raises a ValueError or an OSError if they do not belong together, or cannot be read."""
        self._stamp = self._state()
        texts = [_read(path) for path in self._paths()]
        _check(self.cert, self.key, self.client_ca)
        if [_read(path) for path in self._paths()] != texts:
            raise ValueError(f"{self.cert} and {self.key} are being changed")
        return grpc.ssl_server_certificate_configuration([(texts[1], texts[0])], texts[2] if self.client_ca else None)

    def changed(self) -> grpc.ServerCertificateConfiguration | None:
        """Returns what the files say if they have changed, and can be used. gRPC asks before each handshake."""
        with self._lock:
            if self._state() == self._stamp:
                return None
            try:
                configuration = self.read()
            except (OSError, ValueError) as error:
                fields = {"msg": "certificate refused: what was read last stays in use", "error": str(error)}
                logs.write(logging.ERROR, f"keeping the certificates that were read before: {error}", fields)
                return None
        fields = {"msg": "certificate replaced", "file": self.cert}
        logs.write(logging.INFO, f"read the certificates of {self.cert} again", fields)
        return configuration

    def _paths(self) -> list[str]:
        return [self.cert, self.key] + ([self.client_ca] if self.client_ca else [])

    def _state(self) -> object:
        """Returns what changes when a file is written or replaced."""
        try:
            return [(s.st_mtime_ns, s.st_ino, s.st_size) for s in map(os.stat, self._paths())]
        except OSError as error:
            return str(error)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _check(cert: str, key: str, client_ca: str | None) -> None:
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key, password=lambda: b"")
    except (ssl.SSLError, ValueError):
        raise ValueError(f"{cert} and {key} are not a certificate and its key, in PEM and without a password") from None
    if client_ca:
        try:
            context.load_verify_locations(client_ca)
        except ssl.SSLError:
            raise ValueError(f"{client_ca} has no certificates in PEM") from None
