#!/bin/sh
# Writes the wheel of the package into a folder: ./build.sh FOLDER. VERSION is that of the release.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")"
exec 9<requirements-build.txt
python3 -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'  # until this ends: suites that build it run side by side
if ! cmp -s requirements-build.txt build/requirements.txt; then
  rm -rf build
  python3 -m venv build/venv
  build/venv/bin/python -m pip install --quiet --require-hashes -r requirements-build.txt
  cp requirements-build.txt build/requirements.txt
fi
rm -rf build/wheel
build/venv/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --check-build-dependencies --wheel-dir build/wheel .
# A wheel that has not changed is left alone, for what depends on it.
wheel=$(basename build/wheel/hookgate-*.whl)
cmp -s "build/wheel/$wheel" "$folder/$wheel" || { rm -f "$folder"/hookgate-*.whl; cp "build/wheel/$wheel" "$folder/"; }
