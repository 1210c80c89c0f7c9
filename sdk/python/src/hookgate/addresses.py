# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""Addresses that a server listens on: HOST:PORT, and unix:///PATH."""

import os
import re
import socket
import stat
from collections.abc import Callable
from dataclasses import dataclass

_SOCKET = "unix://"
_LOOPBACK = re.compile(r"127(\.[0-9]{1,3}){3}")


@dataclass(frozen=True)
class Address:
    """An address, as it was written. path is that of a Unix socket; otherwise, host and port are set."""

    text: str
    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def is_local(self) -> bool:
        """Reports whether only programs of this machine can call it."""
        return bool(self.path) or self.host in ("localhost", "::1") or _LOOPBACK.fullmatch(self.host) is not None

    def bind(self, listen: Callable[[str], int]) -> str:
        """Listens with a function of gRPC's, and returns the address with the port that was taken."""
        if self.path:
            _remove_stale(self.path)
        mask = os.umask(0o177) if self.path else None  # the socket is its owner's from the beginning
        try:
            port = listen(self.text)
        except RuntimeError:
            port = 0
        finally:
            if mask is not None:
                os.umask(mask)
        if not port:
            raise OSError(f"cannot listen on {self.text}: {self._reason()}")
        return self.text if self.path or self.port else f"{self.text.rpartition(':')[0]}:{port}"

    def _reason(self) -> str:
        """Says what keeps one from listening, which gRPC leaves to its own log."""
        family = socket.AF_UNIX if self.path else socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            with socket.socket(family, socket.SOCK_STREAM) as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind(self.path or (self.host, self.port))
                if self.path:
                    os.unlink(self.path)
        except OSError as error:
            return error.strerror or str(error)
        return "gRPC could not, and does not say why"


def parse(text: str) -> Address:
    """Returns the address that is written so. It raises a ValueError if none is."""
    if text.startswith(_SOCKET):
        path = text[len(_SOCKET) :]
        if not path.startswith("/"):
            raise ValueError(f'the address "{text}": the path of a socket begins with /, as in unix:///run/acme.sock')
        return Address(text, path=path)
    match = re.fullmatch(r"(?:\[([^\]]+)\]|([^:/\[\]]*)):([0-9]{1,5})", text)
    if not match or int(match[3]) > 65535:
        raise ValueError(f'the address "{text}": want HOST:PORT, or unix:///PATH')
    return Address(text, host=match[1] or match[2], port=int(match[3]))


def _remove_stale(path: str) -> None:
    """Removes the socket of a server that was killed. One that answers, and any other file, is an error."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise OSError(f"cannot listen on {_SOCKET}{path}: there is a file that is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        try:
            s.settimeout(1)
            s.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except OSError as error:
            raise OSError(f"cannot listen on {_SOCKET}{path}: there is a socket already: {error.strerror or error}") from None
    raise OSError(f"cannot listen on {_SOCKET}{path}: another server listens there")
