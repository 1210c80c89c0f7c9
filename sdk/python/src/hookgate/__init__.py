# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""Runtime Extensions of Cluster API in Python: functions from a request of the contract to an answer.

The stubs of the contract are in hookgate.hooks.v1alpha1, hookgate.infrastructure.v1alpha1 and
hookgate.machines.v1alpha1.
"""

from hookgate.answers import Answer, Failure, StatusError, done, fail, wait
from hookgate.extension import Extension
from hookgate.in_place import covers
from hookgate.objects import load, member, setting
from hookgate.patches import Item, Patches, items

__all__ = [
    "Answer",
    "Extension",
    "Failure",
    "Item",
    "Patches",
    "StatusError",
    "covers",
    "done",
    "fail",
    "items",
    "load",
    "member",
    "setting",
    "wait",
]
