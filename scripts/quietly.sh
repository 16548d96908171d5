# Sourced: `quietly LOG COMMAND…` runs a command whose many lines only matter when it fails. They go into LOG and are
# shown then; meanwhile a dot every few seconds says that it goes on.

quietly() {
    local log=$1 status=0 ticker
    shift
    mkdir -p "$(dirname "$log")"
    (while sleep 3; do printf .; done) &
    ticker=$!
    # An interrupt ends the command, and must not leave the dots behind.
    trap 'kill "$ticker" 2>/dev/null' EXIT
    "$@" >"$log" 2>&1 || status=$?
    trap - EXIT
    kill "$ticker" 2>/dev/null || true
    wait "$ticker" 2>/dev/null || true
    printf '\n'
    if [ "$status" != 0 ]; then
        cat "$log" >&2
        printf 'larik-nb: this failed with status %s; its lines are above and in %s\n' "$status" "$log" >&2
    fi
    return "$status"
}
