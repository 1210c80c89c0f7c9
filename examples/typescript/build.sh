#!/bin/sh
# Makes node_modules/ of package-lock.json and of the package that `make packages-typescript` has written, and build/.
# The lock has digests of all but that package, whose file is built: delete its "integrity" after `npm install` here.
set -eu
cd "$(dirname "$0")"
rm -rf build
cp ../../out/packages/hookgate-sdk-*.tgz hookgate-sdk.tgz || { echo 'run `make packages-typescript` first' >&2; exit 1; }
# Scripts of packages are not run: nothing here needs them, and so nothing is downloaded but packages.
installed=node_modules/installed
if ! cmp -s package-lock.json $installed/package-lock.json || ! cmp -s hookgate-sdk.tgz $installed/hookgate-sdk.tgz; then
  npm ci --loglevel=error --ignore-scripts
  mkdir $installed
  cp package-lock.json hookgate-sdk.tgz $installed
fi
npm run --silent build
