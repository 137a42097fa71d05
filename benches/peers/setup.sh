#!/bin/sh
# Sets the peers up that the benchmarks compare with: a Python environment in benches/peers/.venv, and the burn
# crate's program.
#
#   sh benches/peers/setup.sh             everything (PyTorch is large, and burn takes minutes to compile)
#   sh benches/peers/setup.sh python      the Python peers only
#   sh benches/peers/setup.sh burn        the burn peer only
set -eu
CDPATH='' cd -- "$(dirname -- "$0")"
what=${1:-all}

case $what in
all | python | burn) ;;
*)
    echo "setup.sh: $what is neither python nor burn nor all" >&2
    exit 2
    ;;
esac

if [ "$what" != burn ]; then
    [ -x .venv/bin/python ] || python3 -m venv .venv
    .venv/bin/pip install --quiet --upgrade torch jax numpy safetensors
    for peer in pytorch_eager.py pytorch_compiled.py jax_step.py jax_derived.py; do
        .venv/bin/python "$peer" --check
    done
fi

if [ "$what" != python ]; then
    cargo build --release --locked --manifest-path burn/Cargo.toml
    burn/target/release/querent-peer-burn cpu --check
fi
