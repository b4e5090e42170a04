# shellcheck shell=bash
# From variables to the flags that `memconform lme tri` and `lme run` share; sourced, not run.
# `flags` has them afterwards. The program checks the values.

lme_usage() { # lines of the script's own variables
  cat <<USAGE
Usage: [NAME=VALUE ...] $0 [FLAG ...]
Flags are those of the command that the script runs, and take precedence over variables.

$1
  DATASET=longmemeval_s_cleaned  file of LongMemEval, or the name of a fetched one
  SAMPLE_SIZE=50                 questions to draw
  SEED=42                        seed of the sample
  SAMPLE_IDS_FILE                ids of the questions, one a line; replaces the sample
  INGEST_MODE=replay             bulk, replay, none or agentic
  BRAIN_ID=eval-lme              brain of the daemons to fill
  JB_HOME                        shared brains are stored in JB_HOME/brains
  SKIP_EXTRACT=0                 1: use the brain of an earlier run
  EXTRACT_MODEL=gpt-4o           model that extracts facts
  ACTOR_MODEL=gpt-4o             model that answers
  JUDGE_MODEL=claude-haiku-4-5   model that judges; empty: exact scoring
  RETRIEVAL_MODE=hybrid-rerank   mode of every search
  TOP_K=20                       chunks that a search returns
  CANDIDATE_K=60                 candidates of each leg
  RERANK_TOP_N=20                chunks that are reranked
  CONCURRENCY=8                  questions that are read and judged at once
  REPLAY_CONCURRENCY=16          sessions from which facts are extracted at once
  MAX_COST=20                    budget in US dollars, of all models together
  PORT=18850                     port of the first daemon, each further one gets the next; 0: free ones
  UPSTREAM=scripted              what answers the daemons' model calls: own, scripted or real
  OUTPUT_ROOT                    folder of the results; that of an interrupted run is continued
USAGE
}

flags=(
  --dataset "${DATASET:-longmemeval_s_cleaned}"
  --sample-size "${SAMPLE_SIZE:-50}"
  --seed "${SEED:-42}"
  --actor-brain "${BRAIN_ID:-eval-lme}"
  --actor-topk "${TOP_K:-20}"
  --actor-candidatek "${CANDIDATE_K:-60}"
  --actor-rerank-topn "${RERANK_TOP_N:-20}"
  --max-cost-usd "${MAX_COST:-20}"
  --port "${PORT:-18850}"
)

add_flag() { # flag, value; a variable that is unset or empty leaves the program's default
  if [ -n "$2" ]; then flags+=("$1" "$2"); fi
}

add_flag --sample-ids-file "${SAMPLE_IDS_FILE:-}"
add_flag --ingest-mode "${INGEST_MODE:-}"
add_flag --brain-cache "${JB_HOME:+$JB_HOME/brains}"
add_flag --extract-model "${EXTRACT_MODEL:-}"
add_flag --actor "${ACTOR_MODEL:-}"
add_flag --retrieval-mode "${RETRIEVAL_MODE:-}"
add_flag --concurrency "${CONCURRENCY:-}"
add_flag --replay-concurrency "${REPLAY_CONCURRENCY:-}"
add_flag --upstream "${UPSTREAM:-}"
add_flag --output "${OUTPUT_ROOT:-}"
if [ -n "${JUDGE_MODEL+set}" ]; then flags+=(--judge "$JUDGE_MODEL"); fi
case ${SKIP_EXTRACT:-0} in
  0) ;;
  1) flags+=(--skip-extract) ;;
  *)
    echo "SKIP_EXTRACT is ${SKIP_EXTRACT}, not 0 or 1" >&2
    exit 2
    ;;
esac
