# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""Fixtures of the tests, which run outside of the repository, with the package installed."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest

from hookgate import Extension
from hookgate.server import Server


@pytest.fixture(scope="session")
def repository() -> Path:
    """The repository, for the files that every language shares."""
    return Path(os.environ["HOOKGATE_REPOSITORY"])


@pytest.fixture
def start() -> Iterator[Callable[..., tuple[Server, grpc.Channel]]]:
    """Starts servers on free ports of loopback, each with a channel to it."""
    with ExitStack() as stack:

        def started(extension: Extension, **options: Any) -> tuple[Server, grpc.Channel]:
            server = stack.enter_context(extension.start("127.0.0.1:0", **options))
            return server, stack.enter_context(grpc.insecure_channel(server.address))

        yield started
