#!/bin/sh
# Writes the crate, which has a copy of the contract, into a folder: ./build.sh FOLDER. VERSION is that of the release.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")"
version=$(echo "${VERSION:-}" | sed -nE 's/^v([0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?)$/\1/p')
: "${version:=0.0.0-dev}"
rm -rf target/crate && mkdir -p target/crate
cp -R Cargo.lock README.md build.rs src ../../LICENSE target/crate/
for file in Cargo.toml Cargo.lock; do
  sed "s/^version = \"0.0.0-dev\".*/version = \"$version\"/" $file > target/crate/$file
done
(cd ../.. && find proto/hookgate -name '*.proto') | while read -r file; do
  mkdir -p "target/crate/$(dirname "$file")" && cp "../../$file" "target/crate/$file"
done
# It is compiled where it is tested.
cargo package --quiet --no-verify --allow-dirty --locked --manifest-path target/crate/Cargo.toml --target-dir target/crate
rm -f "$folder"/hookgate-*.crate
cp "target/crate/package/hookgate-$version.crate" "$folder/"
