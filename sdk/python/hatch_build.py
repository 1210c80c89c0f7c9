# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""Generates the stubs of ../../proto, when a wheel is built: messages and services with their types, and a module for each
package of the contract that has all of its messages and enums."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

PROTO = "../../proto"


def version() -> str:
    """Returns the version of the release in VERSION, as Python writes versions, or 0.0.0.dev0 if that names none."""
    described = re.fullmatch(r"v(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.(\d+))?", os.environ.get("VERSION", ""))
    return "".join(part or "" for part in described.groups()) if described else "0.0.0.dev0"


if __name__ == "hatch_build" or "hatchling" in sys.modules:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class StubsHook(BuildHookInterface):  # type: ignore[type-arg]
        """Adds the stubs to the wheel."""

        PLUGIN_NAME = "custom"

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Generates the stubs into build/ and includes them."""
            root = Path(self.root)
            stubs = root / "build" / "stubs"
            shutil.rmtree(stubs, ignore_errors=True)
            generate(root / PROTO, stubs)
            build_data["force_include"][str(stubs / "hookgate")] = "hookgate"


def generate(proto: Path, out: Path) -> None:
    """Writes the stubs of all protos below a folder."""
    out.mkdir(parents=True)
    files = sorted(str(file) for file in proto.glob("hookgate/*/*/*.proto"))
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", "-I", str(proto), "--python_out", str(out), "--grpc_python_out", str(out),
         *(f"--plugin=protoc-gen-{name}={Path(sys.executable).parent / f'protoc-gen-{name}'}" for name in ("mypy", "mypy_grpc")),
         "--mypy_out", f"quiet:{out}", "--mypy_grpc_out", f"quiet:{out}",
         "--descriptor_set_out", str(out / "descriptors.binpb"), *files],
        check=True,
    )  # fmt: skip
    write_packages(out)


def write_packages(out: Path) -> None:
    """Writes the module of each package, with its messages, enums and values of enums. A program that imports one name
    loads the one file of the contract that has it."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    descriptors = out / "descriptors.binpb"
    packages: dict[str, dict[str, str]] = {}
    for file in FileDescriptorSet.FromString(descriptors.read_bytes()).file:
        names = [m.name for m in file.message_type] + [e.name for e in file.enum_type]
        names += [value.name for enum in file.enum_type for value in enum.value]
        packages.setdefault(file.package, {}).update(dict.fromkeys(names, Path(file.name).stem + "_pb2"))
    descriptors.unlink()
    for package, members in packages.items():
        folder = out / package.replace(".", "/")
        (folder / "__init__.py").write_text(MODULE.format(package=package, members=members))
        imports = (f"from {package}.{module} import {name} as {name}\n" for name, module in members.items())
        (folder / "__init__.pyi").write_text("".join(imports))
        (folder.parent / "__init__.py").write_text("")


MODULE = '''"""The messages and enums of the package {package} of the contract."""

from importlib import import_module as _import_module

_MEMBERS = {members}

__all__ = list(_MEMBERS)


def __getattr__(name):
    if name not in _MEMBERS:
        raise AttributeError(f"module {{__name__}} has no attribute {{name}}")
    return getattr(_import_module(f"{{__name__}}.{{_MEMBERS[name]}}"), name)


def __dir__():
    return __all__
'''
