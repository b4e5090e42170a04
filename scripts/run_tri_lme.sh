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
for name in S_DATASET S_DATASET_SHA256 SHARED_JB_HOME RESULTS_DIR RUN_VERBATIM_RETRIEVAL; do
  refuse_set "$name" "it is a variable of run_lme_modes.sh"
done
lme_shared_flags
read -ra sdks <<<"${SDKS:-ts go py}"
for sdk in "${sdks[@]}"; do flags+=(--sdk "$sdk"); done
exec "$scripts/../.venv/bin/memconform" lme tri "${flags[@]}" "$@"
