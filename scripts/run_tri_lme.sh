#!/usr/bin/env bash
# Compares what several SDKs retrieve on LongMemEval; -h lists the variables, docs/REPLAY.md explains.
set -euo pipefail
scripts=$(dirname "$0")
# shellcheck source=scripts/lme_flags.sh
source "$scripts/lme_flags.sh"
case ${1:-} in
  -h | --help)
    lme_usage '  SDKS="ts go py"                SDKs to compare, in the order of their ports'
    exit
    ;;
esac
read -ra sdks <<<"${SDKS:-ts go py}"
for sdk in "${sdks[@]}"; do flags+=(--sdk "$sdk"); done
exec "$scripts/../.venv/bin/memconform" lme tri "${flags[@]}" "$@"
