#!/usr/bin/env bash
# Puts what one SDK retrieves beside two controls; -h lists the variables, docs/REPLAY.md explains.
set -euo pipefail
scripts=$(dirname "$0")
# shellcheck source=scripts/lme_flags.sh
source "$scripts/lme_flags.sh"
case ${1:-} in
  -h | --help)
    lme_usage '  SDK=go                         SDK to replay
  S_DATASET                      as DATASET, which it takes precedence over
  S_DATASET_SHA256               as EXPECTED_SHA, likewise
  SHARED_JB_HOME                 as JB_HOME, likewise
  RESULTS_DIR                    without OUTPUT_ROOT, results are in RESULTS_DIR/lme-modes-TIME
  RUN_VERBATIM_RETRIEVAL=0       1: once more on the sessions alone, in OUTPUT_ROOT/verbatim-retrieval'
    exit
    ;;
esac
DATASET=${S_DATASET:-${DATASET:-}}
EXPECTED_SHA=${S_DATASET_SHA256:-${EXPECTED_SHA:-}}
JB_HOME=${SHARED_JB_HOME:-${JB_HOME:-}}
verbatim=
if is_on RUN_VERBATIM_RETRIEVAL; then verbatim=1; fi
if [ -n "$verbatim${RESULTS_DIR:-}" ]; then
  OUTPUT_ROOT=${OUTPUT_ROOT:-${RESULTS_DIR:-results}/lme-modes-$(date +%Y%m%d-%H%M%S)}
fi
lme_shared_flags
run=("$scripts/../.venv/bin/memconform" lme run "${flags[@]}" --sdk "${SDK:-go}")
modes=(--benchmark-mode "oracle,full-context,real-retrieval")
if [ -z "$verbatim" ]; then exec "${run[@]}" "${modes[@]}" "$@"; fi
"${run[@]}" "${modes[@]}" "$@"
# The last of flags that are given twice counts. Facts, which are not searched, need no project.
exec "${run[@]}" --actor-scope raw_lme --actor-path-prefix raw/lme/ --actor-project "" "$@" \
  --output "$OUTPUT_ROOT/verbatim-retrieval"
