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
rm -rf build/stubs build/stubs.new
mkdir build/stubs.new
build/venv/bin/python -m grpc_tools.protoc -I ../../proto --python_out=build/stubs.new --pyi_out=build/stubs.new --grpc_python_out=build/stubs.new \
  ../../proto/hookgate/hooks/v1alpha1/*.proto
mv build/stubs.new build/stubs
