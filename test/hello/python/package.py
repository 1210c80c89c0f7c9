# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""An extension with one handler, on the package."""

import sys

from hookgate import Answer, Extension, done
from hookgate.hooks.v1alpha1 import BeforeClusterUpgradeRequest

extension = Extension()


@extension.handler
def hello(_: BeforeClusterUpgradeRequest) -> Answer:
    """Says yes."""
    return done()


extension.serve(sys.argv[1])
