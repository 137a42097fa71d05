#!/bin/sh
# Builds the WebAssembly of the ask page, web/page/ask.wasm.gz, which is inside of the `querent` command. It is committed, so
# that the command builds without the wasm toolchain; `--check` builds it again and fails if that gives other bytes.
#
#   sh web/build.sh            after a change of what asks (src/asking, src/policy, how a method reads its models, …)
#   sh web/build.sh --check    whether that was forgotten
#
# Equal bytes need the compiler that web/page/rustc.txt names.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")/.."

rustc=$(rustc --version)
made_with=$(cat web/page/rustc.txt 2>/dev/null || true)
if [ "${1:-}" = --check ] && [ "$rustc" != "$made_with" ]; then
    echo "web/page/ask.wasm.gz was made with $made_with, this is $rustc: run sh web/build.sh and commit what changes" >&2
    exit 1
fi

# No folder of this machine gets into the file, and another machine gives the same bytes.
remapped="--remap-path-prefix=$PWD=."
for registry in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
    remapped="$remapped --remap-path-prefix=$registry=crates"
done
RUSTFLAGS="$remapped" \
    CARGO_TARGET_DIR="${QUERENT_WEB_TARGET:-$PWD/target/web}" \
    cargo build --quiet --locked --profile page --package querent-ask --target wasm32-unknown-unknown

made=${QUERENT_WEB_TARGET:-$PWD/target/web}/wasm32-unknown-unknown/page/querent_ask.wasm
packed=$made.gz
gzip -9nc "$made" >"$packed"
if [ "${1:-}" = --check ]; then
    # Other versions of gzip pack otherwise: what is inside counts.
    if ! gzip -dc web/page/ask.wasm.gz | cmp -s - "$made"; then
        echo "web/page/ask.wasm.gz is not what the sources give: run sh web/build.sh and commit it" >&2
        exit 1
    fi
    echo "web/page/ask.wasm.gz is what the sources give"
else
    cp "$packed" web/page/ask.wasm.gz
    echo "$rustc" >web/page/rustc.txt
    echo "web/page/ask.wasm.gz: $(wc -c <"$packed") bytes, $(wc -c <"$made") unpacked"
fi
