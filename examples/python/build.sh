#!/bin/sh
# Makes build/: the packages of requirements.txt, and the wheel that `make packages-python` has written.
set -eu
cd "$(dirname "$0")"
wheel=$(ls ../../out/packages/hookgate-*.whl 2>/dev/null) || { echo 'run `make packages-python` first' >&2; exit 1; }
if ! cmp -s requirements.txt build/requirements.txt; then
  rm -rf build
  python3 -m venv build/venv
  build/venv/bin/pip install --quiet --require-hashes -r requirements.txt
  cp requirements.txt build/
fi
# A wheel that is in use and has not changed is left alone.
if ! cmp -s "$wheel" "build/$(basename "$wheel")"; then
  rm -f build/*.whl
  build/venv/bin/pip install --quiet --no-deps --force-reinstall "$wheel"
  cp "$wheel" build/
fi
