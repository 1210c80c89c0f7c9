#!/bin/sh
# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes node_modules/ of package-lock.json, src/gen/ of ../../proto, and dist/.
set -eu
cd "$(dirname "$0")"
# Scripts of packages are not run: nothing here needs them, and so nothing is downloaded but packages.
if ! cmp -s package-lock.json node_modules/installed.json; then
  npm ci --loglevel=error --ignore-scripts
  cp package-lock.json node_modules/installed.json
fi
rm -rf build dist src/hooks src/infrastructure src/machines
# gRPC's health and reflection: the files of the contract are in the packages that implement them for other stubs.
mkdir -p build/proto
cp -r node_modules/grpc-health-check/proto/health node_modules/@grpc/reflection/build/proto/grpc build/proto
node_modules/.bin/buf generate
# One module for each version of a group: src/hooks/v1alpha1.ts re-exports all stubs of hookgate.hooks.v1alpha1.
for folder in src/gen/hookgate/*/*; do
  version=${folder#src/gen/hookgate/}
  mkdir -p "src/${version%/*}"
  for file in "$folder"/*_pb.ts; do
    echo "export * from \"../${file#src/}\";"
  done | sed 's/\.ts";/.js";/' > "src/$version.ts"
done
node_modules/.bin/tsc
