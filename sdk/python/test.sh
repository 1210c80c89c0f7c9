#!/bin/sh
# Installs the wheel of a folder into an empty environment outside of the repository, and tests it there with the linters
# and a program that uses it: ./test.sh FOLDER. HOOKGATE_BIN is the program that checks extensions.
set -eu
wheel=$(ls "$(cd "$1" && pwd)"/hookgate-*.whl)
cd "$(dirname "$0")"
sources=$PWD
HOOKGATE_REPOSITORY=$(cd ../.. && pwd)
export HOOKGATE_REPOSITORY
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --require-hashes -r requirements-test.txt -r ../../examples/python/requirements.txt
"$place/venv/bin/pip" install --quiet --no-deps "$wheel"
"$place/venv/bin/pip" check
cp -R tests pyproject.toml "$place/"
cd "$place"
PATH=$place/venv/bin:$PATH
ruff check --quiet --no-cache "$sources"
ruff format --quiet --no-cache --check "$sources"
mypy --strict --package hookgate
mypy --strict tests "$HOOKGATE_REPOSITORY/examples/python/hooks.py"
mypy --strict "$HOOKGATE_REPOSITORY/examples/infrastructure/python/main.py"
python -m pytest -q -p no:cacheprovider
