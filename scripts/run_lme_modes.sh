#!/usr/bin/env bash
# Puts what one SDK retrieves beside two controls; -h lists the variables, docs/REPLAY.md explains.
set -euo pipefail
scripts=$(dirname "$0")
# shellcheck source=scripts/lme_flags.sh
source "$scripts/lme_flags.sh"
case ${1:-} in
  -h | --help)
    lme_usage '  SDK=go                         SDK to replay'
    exit
    ;;
esac
exec "$scripts/../.venv/bin/memconform" lme run "${flags[@]}" --sdk "${SDK:-go}" \
  --benchmark-mode oracle,full-context,real-retrieval "$@"
