# shellcheck shell=bash
# From variables to the flags that `memconform lme tri` and `lme run` share; sourced, not run.
# `flags` has them afterwards. The program checks the values. The names are those of the scripts of
# jeffs-brain/memory; a variable of theirs that would change nothing here is refused.

lme_usage() { # lines of the script's own variables
  cat <<USAGE
Usage: [NAME=VALUE ...] $0 [FLAG ...]
Flags are those of the command that the script runs, and take precedence over variables.

$1
  DATASET=longmemeval_s_cleaned  file of LongMemEval, or the name of a fetched one
  EXPECTED_SHA                   SHA-256 that the file must have
  SAMPLE_SIZE=50                 questions to draw
  SEED=42                        seed of the sample
  SAMPLER=memconform             who draws; jeffs-brain: the questions that its runner draws
  SAMPLE_IDS_FILE                ids of the questions, one a line; replaces the sample
  INGEST_MODE=replay             bulk, replay, none or agentic
  BRAIN_ID=eval-lme              brain of the daemons to fill
  EXTRACT_CACHE_DIR              folder of shared brains, by all that they depend on
  JB_HOME                        shared brains are stored in JB_HOME/brains, without EXTRACT_CACHE_DIR
  SKIP_EXTRACT=0                 1: use the brain of an earlier run
  EXTRACT_MODEL=gpt-4o           model that extracts facts
  CONTEXTUALISE=0                1: each fact says how it belongs to its session
  CONTEXTUALISE_CACHE_DIR        folder for the replies of CONTEXTUALISE
  JB_EXTRACT_HEURISTICS          fallback: the heuristic extracts where the model fails, as it always does
  ACTOR_MODEL=gpt-4o             model that answers
  JUDGE_MODEL=claude-haiku-4-5   model that judges; empty: exact scoring
  READER_CACHE_DIR               folder for the replies of the model that answers
  JUDGE_CACHE_DIR                folder for the replies of the model that judges
  RETRIEVAL_MODE=                mode of every search; empty: the best that all SDKs claim
  TOP_K=20                       chunks that a search returns
  CANDIDATE_K=60                 candidates of each leg
  RERANK_TOP_N=20                chunks that are reranked
  RERANK_PROVIDER                JB_RERANK_PROVIDER of the daemons
  RERANK_MODEL                   JB_RERANK_MODEL of the daemons
  JB_RERANK_URL                  JB_RERANK_URL of the daemons
  ACTOR_SCOPE                    search only memory, project, global or raw
  ACTOR_PROJECT                  search only facts of this project
  ACTOR_PATH_PREFIX              search only documents whose path begins so
  ACTOR_FILTER_QUESTION_SESSIONS=auto  1, 0 or auto: ask each question of its own sessions alone
  CONCURRENCY=8                  questions that are read and judged at once
  REPLAY_CONCURRENCY=16          sessions from which facts are extracted at once
  MAX_COST=20                    budget in US dollars, of all models together
  PORT=18850                     port of the first daemon, each further one gets the next; 0: free ones
  TS_PORT                        port of the daemon of the SDK ts
  GO_PORT                        port of the daemon of the SDK go
  PY_PORT                        port of the daemon of the SDK py
  UPSTREAM=scripted              what answers the daemons' model calls: own, scripted or real
  OUTPUT_ROOT                    folder of the results; that of an interrupted run is continued
USAGE
  echo
  echo "Refused, because they would change nothing here:"
  printf '  %s\n' "${lme_refused[@]/|/: }"
}

lme_refused=(
  "REUSE_EXTRACT_CACHE|a brain is used again if all that it depends on is the same; to extract again, delete its file and the cached replies"
  "SAVE_EXTRACT_CACHE|every brain is stored; give EXTRACT_CACHE_DIR a folder to delete afterwards"
  "REPLAY_EXTRACTION_PIPELINE_VERSION|the name of a brain contains the digest of the prompt that extracts"
  "WARMUP_SECONDS|every index is proven complete before the first question"
  "VECTOR_READY_TIMEOUT_SECONDS|set [seed] timeout_s in the sdk.toml of the SDK"
  "ROOT_DIR|the daemons are those of SDK or SDKS; with their sdk.toml, JEFFS_BRAIN is the checkout"
  "MEMORY_DIR|the daemons are those of SDK or SDKS; with their sdk.toml, JEFFS_BRAIN is the checkout"
  "GO_SDK_DIR|the daemons are those of SDK or SDKS; with their sdk.toml, JEFFS_BRAIN is the checkout"
  "MEMORY_GO|a daemon is built by the command of its sdk.toml"
  "ORACLE_DATASET|the control oracle takes the sessions with the answer from DATASET"
  "ORACLE_URL|the control oracle takes the sessions with the answer from DATASET"
  "ORACLE_SHA256|the control oracle takes the sessions with the answer from DATASET; use EXPECTED_SHA"
  "JB_RERANK_API_KEY|with UPSTREAM=real, daemons get the variables that their sdk.toml names"
  "JB_LLM_API_KEY|use OPENAI_API_KEY or ANTHROPIC_API_KEY"
  "JB_LLM_BASE_URL|use OPENAI_BASE_URL or ANTHROPIC_BASE_URL"
)

refuse() { # variable, value, what to do
  echo "$1=$2 is refused: $3" >&2
  exit 2
}

refuse_set() { # variable, what to do
  if [ -n "${!1-}" ]; then refuse "$1" "${!1}" "$2"; fi
}

is_on() { # variable: whether it is 1 or true, and not 0, false or empty
  case ${!1-} in
    1 | true) return 0 ;;
    '' | 0 | false) return 1 ;;
    *) refuse "$1" "${!1}" "it is neither 0 nor 1" ;;
  esac
}

add_flag() { # flag, value; a variable that is unset or empty leaves the program's default
  if [ -n "$2" ]; then flags+=("$1" "$2"); fi
}

lme_shared_flags() {
  local entry name value
  for entry in "${lme_refused[@]}"; do
    name=${entry%%|*}
    value=${!name-}
    case $name=$value in
      # What they ask for is what happens.
      REUSE_EXTRACT_CACHE=[1t]* | SAVE_EXTRACT_CACHE=[1t]* | WARMUP_SECONDS=0) continue ;;
      JB_RERANK_API_KEY=?*)
        if [ "${UPSTREAM:-}" = real ]; then continue; fi
        value='…' # a secret
        ;;
      JB_LLM_API_KEY=?*) value='…' ;;
    esac
    if [ -n "$value" ]; then refuse "$name" "$value" "${entry#*|}"; fi
  done
  case ${JB_EXTRACT_HEURISTICS:-} in
    # Of the values of jeffs-brain's runner, all that do not add the heuristic's facts to those of the model.
    '' | fallback | fallback-only | off | none) ;;
    *) refuse JB_EXTRACT_HEURISTICS "$JB_EXTRACT_HEURISTICS" "no facts are added to those of the model; use fallback" ;;
  esac
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
  add_flag --expected-sha "${EXPECTED_SHA:-}"
  add_flag --sampler "${SAMPLER:-}"
  add_flag --sample-ids-file "${SAMPLE_IDS_FILE:-}"
  add_flag --ingest-mode "${INGEST_MODE:-}"
  add_flag --brain-cache "${EXTRACT_CACHE_DIR:-${JB_HOME:+$JB_HOME/brains}}"
  add_flag --extract-model "${EXTRACT_MODEL:-}"
  add_flag --contextualise-cache-dir "${CONTEXTUALISE_CACHE_DIR:-}"
  add_flag --actor "${ACTOR_MODEL:-}"
  add_flag --reader-cache-dir "${READER_CACHE_DIR:-}"
  add_flag --judge-cache-dir "${JUDGE_CACHE_DIR:-}"
  add_flag --retrieval-mode "${RETRIEVAL_MODE:-}"
  add_flag --env "${RERANK_PROVIDER:+JB_RERANK_PROVIDER=$RERANK_PROVIDER}"
  add_flag --env "${RERANK_MODEL:+JB_RERANK_MODEL=$RERANK_MODEL}"
  add_flag --env "${JB_RERANK_URL:+JB_RERANK_URL=$JB_RERANK_URL}"
  add_flag --actor-scope "${ACTOR_SCOPE:-}"
  add_flag --actor-project "${ACTOR_PROJECT:-}"
  add_flag --actor-path-prefix "${ACTOR_PATH_PREFIX:-}"
  add_flag --actor-filter-question-sessions "${ACTOR_FILTER_QUESTION_SESSIONS:-}"
  add_flag --concurrency "${CONCURRENCY:-}"
  add_flag --replay-concurrency "${REPLAY_CONCURRENCY:-}"
  add_flag --sdk-port "${TS_PORT:+ts=$TS_PORT}"
  add_flag --sdk-port "${GO_PORT:+go=$GO_PORT}"
  add_flag --sdk-port "${PY_PORT:+py=$PY_PORT}"
  add_flag --upstream "${UPSTREAM:-}"
  add_flag --output "${OUTPUT_ROOT:-}"
  if [ -n "${JUDGE_MODEL+set}" ]; then flags+=(--judge "$JUDGE_MODEL"); fi
  if is_on CONTEXTUALISE; then flags+=(--contextualise); fi
  if is_on SKIP_EXTRACT; then flags+=(--skip-extract); fi
}
