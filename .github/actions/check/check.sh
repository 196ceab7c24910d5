#!/usr/bin/env bash
# What the action runs: its inputs come as SCANTLING_*, never as text of a script.
set -euo pipefail

out="${RUNNER_TEMP:-$(mktemp -d)}"
junit="$out/scantling-junit.xml"
sarif="$out/scantling.sarif"
read -r -a paths <<< "${SCANTLING_PATHS:-.}"
options=(--tolerance "${SCANTLING_TOLERANCE:-0}" --junit "$junit" --sarif "$sarif")
if [ "${SCANTLING_LOCKED:-false}" = true ]; then options+=(--locked); fi
if [ -n "${SCANTLING_INSTALL:-}" ]; then python -m pip install --quiet "$SCANTLING_INSTALL"; fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  { echo "junit=$junit"; echo "sarif=$sarif"; } >> "$GITHUB_OUTPUT"
fi

# what changed designs do, for the page of the run; a design that is wrong is the check's to name
if [ -n "${SCANTLING_BASE:-}" ] && [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
  if ! base=$(git rev-parse --verify --quiet --end-of-options "$SCANTLING_BASE^{commit}"); then
    echo "scantling: base: is no revision of this checkout; allowed: fetch-depth 0" >&2
    exit 2
  fi
  git diff --name-only -z --relative --diff-filter=M "$base" -- '*.yaml' '*.yml' |
    while IFS= read -r -d '' file; do
      if text=$(scantling diff --markdown -- "git:$base:$file" "$file" 2> /dev/null); then
        printf '%s\n\n' "$text" >> "$GITHUB_STEP_SUMMARY"
      fi
    done
fi

scantling check "${options[@]}" -- "${paths[@]}"
