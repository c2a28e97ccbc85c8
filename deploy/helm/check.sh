#!/bin/sh
# Lints the chart and renders it with many values; needs helm 3 on the PATH. Not a part of `npm test`, which needs npm alone.
set -eu
cd "$(dirname "$0")/../.."
command -v helm >/dev/null || {
  echo 'deploy/helm/check.sh: there is no helm on the PATH; nothing was checked' >&2
  exit 1
}
exec node scripts/test.mjs ./test/deploy/helm-chart.ts
