#!/bin/sh
# Builds the studio page into web/dist, a static folder for any web server.
#
#   sh web/studio/build.sh
#   cargo run --release --package querent-serve    then serves it, at http://127.0.0.1:8017/
#
# It needs the target: rustup target add wasm32-unknown-unknown
set -eu
CDPATH='' cd -- "$(dirname -- "$0")/../.."

# Four numbers at a time: every browser that has WebGPU has these instructions, and those that have not since 2023.
RUSTFLAGS="-C target-feature=+simd128" \
    CARGO_TARGET_DIR="$PWD/target/studio" \
    cargo build --quiet --locked --profile studio --package querent-studio --target wasm32-unknown-unknown
made=$PWD/target/studio/wasm32-unknown-unknown/studio/querent_studio.wasm

rm -rf web/dist
cargo run --quiet --locked --profile tool --package querent-pack -- "$made" web/dist
echo "web/dist: $(cat web/dist/* | gzip -9c | wc -c) bytes compressed"
