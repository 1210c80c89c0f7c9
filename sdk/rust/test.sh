#!/bin/sh
# Tests the package, and then an empty project outside of the repository that depends on the crate of a folder:
# ./test.sh FOLDER. HOOKGATE_BIN is the program that checks extensions.
set -eu
crate=$(ls "$(cd "$1" && pwd)"/hookgate-*.crate)
cd "$(dirname "$0")"
CARGO_TARGET_DIR=$(cd ../.. && pwd)/examples/rust/target # has the compiled dependencies
export CARGO_TARGET_DIR
cargo fmt --check
cargo test --quiet --release --locked --all-features

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir -p "$place/hello" "$place/crate"
tar -xzf "$crate" -C "$place/crate" --strip-components 1
cp -R tests/hello/* "$place/hello/"
sed 's/^name = "hookgate-example"/name = "hello"/' ../../examples/rust/Cargo.lock > "$place/hello/Cargo.lock"
cd "$place/hello"
cargo test --quiet --release
cargo build --quiet --release
"$CARGO_TARGET_DIR/release/hello" "unix://$place/x.sock" 2> "$place/log" & hello=$!
until [ -S "$place/x.sock" ]; do kill -0 $hello || { cat "$place/log"; exit 1; }; sleep 0.1; done
"$HOOKGATE_BIN" call Discovery --server "unix://$place/x.sock" | grep hello
kill $hello && wait $hello
