#!/bin/sh
# Fetches uPlot, which draws the charts of report.html, from the npm registry
# into internal/report/assets: its minified script, its style and its licence.
# To update, change the version here and in docs/reference/dependencies.md, run this, and
# look at the pages: go test ./internal/report -run Browser -screenshots DIR
set -eu
cd "$(dirname "$0")/.."

VERSION=1.6.32

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
(cd "$scratch" && npm pack --silent "uplot@$VERSION" >/dev/null && tar xzf "uplot-$VERSION.tgz")
cp "$scratch/package/dist/uPlot.iife.min.js" "$scratch/package/dist/uPlot.min.css" internal/report/assets/
cp "$scratch/package/LICENSE" internal/report/assets/uPlot.LICENSE
