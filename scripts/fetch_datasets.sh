#!/bin/sh
# Fetches the public benchmarks except LongMemEval M (2.7 GB). Usage: scripts/fetch_datasets.sh [--to DIR]
exec "$(dirname "$0")/../.venv/bin/memconform" datasets fetch \
  locomo longmemeval_oracle longmemeval_s_cleaned wmb100k "$@"
