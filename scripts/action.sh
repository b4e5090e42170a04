#!/usr/bin/env bash
# What action.yml does once memconform is installed: its inputs are the variables INPUT_*.
# Ends with 0; the exit code of the tests is the output `exit-code`, so that results are uploaded.
set -euo pipefail

memconform=$RUNNER_TEMP/memconform/bin/memconform
arguments=(ci "--sdk=$INPUT_SDK" "--data=$INPUT_DATA" "--scenario=$INPUT_SCENARIO" "--mode=$INPUT_MODE"
  "--upstream=$INPUT_UPSTREAM" "--output=$INPUT_OUTPUT")

# A reference of this project comes with the action; any other value is the path of an sdk.toml.
case $INPUT_AGAINST in
  '') ;;
  go | ts | py) arguments+=("--against=$GITHUB_ACTION_PATH/sdks/$INPUT_AGAINST/sdk.toml") ;;
  *) arguments+=("--against=$INPUT_AGAINST") ;;
esac
if [ -n "$INPUT_AGAINST_REF" ]; then arguments+=("--against-ref=$INPUT_AGAINST_REF"); fi
if [ -n "$INPUT_FLOOR" ]; then arguments+=("--floor=$INPUT_FLOOR"); fi

# Adds a flag for each line of a value: add_lines FLAG VALUE.
add_lines() {
  local lines line
  mapfile -t lines <<<"$2"
  for line in "${lines[@]}"; do
    if [ -n "$line" ]; then arguments+=("$1=$line"); fi
  done
}
add_lines --step "$INPUT_STEPS"
add_lines --profile "$INPUT_PROFILES"

code=0
"$memconform" "${arguments[@]}" || code=$?
echo "exit-code=$code" >>"$GITHUB_OUTPUT"
# Missing if the inputs could not be used, which the log says.
if [ -f "$INPUT_OUTPUT/annotations.txt" ]; then cat -- "$INPUT_OUTPUT/annotations.txt"; fi
if [ -f "$INPUT_OUTPUT/summary.md" ]; then cat -- "$INPUT_OUTPUT/summary.md" >>"$GITHUB_STEP_SUMMARY"; fi
