#!/usr/bin/env bash
# Lists the tools with the inspector, which exits with 0 whatever it finds.
set -eu
# The inspector looks for ../package.json, relative to the current folder.
mkdir -p inspected && cd inspected
../node_modules/.bin/mcp-inspector-cli --cli "$COINSLOT_URL/mcp" --transport http --method tools/list >tools.json
for tool in summarize solTokenBrief solMintInfo brandFeedback textToSpeech listVoices pick_up; do
  grep -q "\"name\": \"$tool\"" tools.json || { echo "$tool is not listed" && exit 1; }
done
