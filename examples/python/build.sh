#!/bin/sh
# Makes build/: the packages of requirements.txt, and the stubs of ../../proto.
set -eu
cd "$(dirname "$0")"
if ! cmp -s requirements.txt build/requirements.txt; then
  rm -rf build
  python3 -m venv build/venv
  build/venv/bin/pip install --quiet --require-hashes -r requirements.txt
  cp requirements.txt build/
fi
rm -rf build/stubs.new
mkdir build/stubs.new
build/venv/bin/python -m grpc_tools.protoc -I ../../proto --python_out=build/stubs.new --pyi_out=build/stubs.new --grpc_python_out=build/stubs.new \
  ../../proto/hookgate/hooks/v1alpha1/*.proto
# Stubs that are in use and have not changed are left alone.
if diff -r -x __pycache__ build/stubs.new build/stubs >/dev/null 2>&1; then
  rm -rf build/stubs.new
else
  rm -rf build/stubs
  mv build/stubs.new build/stubs
fi
