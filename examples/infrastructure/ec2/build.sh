#!/bin/sh
# Makes build/venv: the packages of requirements.txt, and the wheel that `make packages-python` has written. With the
# argument test, it also makes build/test, with the packages of requirements-test.txt: moto, which stands in for AWS.
set -eu
cd "$(dirname "$0")"
wheel=$(ls ../../../out/packages/hookgate-*.whl 2>/dev/null) || { echo 'run `make packages-python` first' >&2; exit 1; }

# environment DIRECTORY REQUIREMENTS makes a virtual environment, unless it is there with the same requirements.
environment() {
  cmp -s "$2" "build/$1/$2" && return
  rm -rf "build/$1"
  python3 -m venv "build/$1"
  "build/$1/bin/pip" install --quiet --require-hashes -r "$2"
  cp "$2" "build/$1/"
}

environment venv requirements.txt
# A wheel that is in use and has not changed is left alone.
if ! cmp -s "$wheel" "build/venv/$(basename "$wheel")"; then
  rm -f build/venv/*.whl
  build/venv/bin/pip install --quiet --no-deps --force-reinstall "$wheel"
  cp "$wheel" build/venv/
fi
if [ "${1:-}" = test ]; then environment test requirements-test.txt; fi
