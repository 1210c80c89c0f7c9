# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""A Runtime Extension over gRPC: main.py [HOST:PORT | unix:///PATH]. hooks.py has its handlers."""

import sys

from hooks import extension

if __name__ == "__main__":
    # Without TLS: the gateway is beside it, on loopback or on a socket that only it can open.
    extension.serve(sys.argv[1] if len(sys.argv) > 1 else None)
