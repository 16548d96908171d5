#!/usr/bin/env bash
# See to it that the browser tests have Chromium: install Debian's when we may, else say why they will be skipped.
set -euo pipefail

for browser in chromium chromium-browser google-chrome; do
    if command -v "$browser" >/dev/null; then exit 0; fi
done
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "SKIPPED the browser tests: Chromium was not found, and only root on Debian can install it here."
    exit 0
fi
echo "· installing Chromium for the browser tests (110 MB)"
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; }; then
    echo "SKIPPED the browser tests: apt-get could not install Chromium; see the lines above."
fi
