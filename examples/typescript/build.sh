#!/bin/sh
# Makes node_modules/ of package-lock.json, gen/ of ../../proto, and build/.
set -eu
cd "$(dirname "$0")"
rm -rf build
# Scripts of packages are not run: nothing here needs them, and so nothing is downloaded but packages.
if ! cmp -s package-lock.json node_modules/installed.json; then
  npm ci --loglevel=error --ignore-scripts
  cp package-lock.json node_modules/installed.json
fi
npm run --silent build
