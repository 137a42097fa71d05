#!/bin/sh
# Runs every test, those of the GPU engine included, from any folder. On Linux these need a Vulkan
# driver: if there is none, a software one is installed on Debian and Ubuntu. So is Chromium, for the pages; the studio
# page is built, for which rustup adds the WebAssembly target.
#
#   sh tests/run.sh                        everything
#   sh tests/run.sh --test all golden::    arguments go to `cargo test`
#   QUERENT_GPU=skip sh tests/run.sh       installs nothing; without an adapter, GPU tests are skipped
#
# Tests of the catalog read its data sets from QUERENT_DATA, or else from ../shared/data if there is such a folder.
# One test reads a model from Python. If python3 lacks the packages for it, they go into an environment of its own
# under target/; where that cannot be, the test is skipped, aloud.
set -eu

CDPATH='' cd -- "$(dirname -- "$0")/.."

# With `require`, a test that finds no adapter fails instead of being skipped.
QUERENT_GPU=${QUERENT_GPU:-require}
export QUERENT_GPU

# Whether there is a Vulkan driver where the loader looks for its description, and the loader itself.
has_vulkan() {
    if [ -n "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}" ]; then
        return 0
    fi
    if PATH="$PATH:/sbin:/usr/sbin" command -v ldconfig >/dev/null &&
        ! PATH="$PATH:/sbin:/usr/sbin" ldconfig -p | grep -q 'libvulkan\.so\.1'; then
        return 1
    fi
    for folder in /usr/share /usr/local/share /etc /etc/xdg "${HOME:-}/.local/share" "${HOME:-}/.config"; do
        for file in "$folder"/vulkan/icd.d/*.json; do
            if [ -e "$file" ]; then
                return 0
            fi
        done
    done
    return 1
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "tests/run.sh: as root, run: apt-get install $missing" >&2
        exit 1
    fi
}

# Installs a package of Debian or Ubuntu.
install() {
    missing=$1
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends "$missing" >/dev/null
}

if [ "$QUERENT_GPU" = require ] && [ "$(uname -s)" = Linux ] && ! has_vulkan; then
    if command -v apt-get >/dev/null; then
        echo "tests/run.sh: no Vulkan driver; installing the software driver of mesa-vulkan-drivers"
        install mesa-vulkan-drivers
    else
        {
            echo "tests/run.sh: no Vulkan driver. Install your GPU's, or a software one"
            echo "(Fedora: dnf install mesa-vulkan-drivers; Arch: pacman -S vulkan-swrast),"
            echo "or set QUERENT_GPU=skip to leave the GPU tests out."
        } >&2
        exit 1
    fi
fi

# Pages that ask are opened in Chromium; tests of them fail without one, as those of the GPU engine do without an adapter.
if [ "$QUERENT_GPU" = require ] && [ "$(uname -s)" = Linux ] && [ -z "${QUERENT_BROWSER:-}" ] &&
    ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null && ! command -v google-chrome >/dev/null; then
    if command -v apt-get >/dev/null; then
        echo "tests/run.sh: no Chromium; installing it"
        install chromium
    else
        echo "tests/run.sh: no Chromium. Install it, or name a browser of its kind in QUERENT_BROWSER," >&2
        echo "or set QUERENT_GPU=skip to leave the tests of pages out." >&2
        exit 1
    fi
fi

# Mesa complains without it.
if [ -z "${XDG_RUNTIME_DIR:-}" ]; then
    XDG_RUNTIME_DIR=$(mktemp -d)
    export XDG_RUNTIME_DIR
    trap 'rm -rf "$XDG_RUNTIME_DIR"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
fi

# The program itself looks in no folder of this project's: only its tests do.
if [ -z "${QUERENT_DATA:-}" ] && [ -d ../shared/data ]; then
    QUERENT_DATA=$(CDPATH='' cd -- ../shared/data && pwd)
    export QUERENT_DATA
fi

# Numpy and safetensors, where everything is to be tested and nobody says which Python.
if [ $# -eq 0 ] && [ "$QUERENT_GPU" = require ] && [ -z "${QUERENT_PYTHON:-}" ] &&
    command -v python3 >/dev/null && ! python3 -c 'import numpy, safetensors.numpy' 2>/dev/null; then
    place=$PWD/target/python
    [ -x "$place/bin/pip" ] || python3 -m venv "$place" >/dev/null 2>&1 || true
    if "$place/bin/pip" --quiet --timeout 15 --retries 1 install numpy safetensors 2>/dev/null; then
        QUERENT_PYTHON=$place/bin/python
        export QUERENT_PYTHON
    else
        echo "tests/run.sh: numpy and safetensors could not be installed in target/python; one test is skipped"
    fi
fi

if [ $# -gt 0 ]; then
    cargo test --release --package querent "$@"
    exit
fi
# The studio page, for the tests that open it. It is built beside the tests, in a folder of its own.
page=
if [ "$QUERENT_GPU" = require ]; then
    rustup target add wasm32-unknown-unknown
    sh web/studio/build.sh &
    page=$!
fi
# All at once, so that no core waits. Of the examples only those that tests run: building the others is a fifth of the time,
# and the linter looks at them.
cargo build --release --package querent --bins --tests --example syn1 --example cube_nm
[ -z "$page" ] || wait "$page"
cargo test --release --package querent --tests
cargo test --release --package querent --doc
