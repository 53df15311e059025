#!/bin/sh
# Run a command with its temporary folder in memory, where there is room: the tests make and remove some hundred thousand
# small files, which takes a tenth of the processors' time on a disk. Usage: tools/in_memory.sh COMMAND [ARGUMENT...]
# A TMPDIR that is set stays, and so does the disk where /dev/shm is missing or small. The folder goes with the command.
set -u
NEEDED_MB=6144

mb_of() { # the number of MB in the 4th column of df, or in a line of /proc/meminfo
  case $1 in
    memory) awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo 2>/dev/null ;;
    *) df -Pm "$1" 2>/dev/null | awk 'NR == 2 { print $4 }' ;;
  esac
}

has_room() {
  [ -d /dev/shm ] && [ -w /dev/shm ] && [ "$(mb_of /dev/shm)" -ge "$NEEDED_MB" ] && [ "$(mb_of memory)" -ge $((2 * NEEDED_MB)) ]
}

if [ -n "${TMPDIR:-}" ] || ! has_room 2>/dev/null; then
  exec "$@"
fi
# A short name: paths of sockets have at most 107 bytes.
TMPDIR=$(mktemp -d /dev/shm/rk.XXXXXX) || exit 1
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"$@"
