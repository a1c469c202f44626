# shellcheck shell=bash
# Shared by the scripts beside it: collect what is missing, then install all of it at once or say how.

MISSING_PACKAGES=()

say() { printf '== %s\n' "$*"; }

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

need_package() { MISSING_PACKAGES+=("$1"); }

# need COMMAND PACKAGE: the Debian package that brings a command that is not here.
need() { has "$1" || need_package "$2"; }

can_install() { [[ $(id -u) == 0 ]] && has apt-get; }

install_missing() {
  if [[ ${#MISSING_PACKAGES[@]} == 0 ]]; then
    return
  fi
  if ! can_install; then
    fail "missing: ${MISSING_PACKAGES[*]}. Run as root: apt-get install ${MISSING_PACKAGES[*]}" \
      "(elsewhere, install what your system calls them)"
  fi
  say "installing ${MISSING_PACKAGES[*]}"
  apt_install "${MISSING_PACKAGES[@]}" || fail "apt-get could not install: ${MISSING_PACKAGES[*]}"
  MISSING_PACKAGES=()
}

apt_install() {
  local log
  log=$(mktemp)
  if without_services apt_quietly "$@" >"$log" 2>&1; then
    rm -f "$log"
    return
  fi
  tail -n 20 "$log" >&2
  rm -f "$log"
  return 1
}

apt_quietly() {
  export DEBIAN_FRONTEND=noninteractive
  # A fresh machine often updates itself in the background. apt can wait for the lock on packages, but not for that
  # on their lists: those are asked for again.
  local patient=(-q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3) try
  for try in 1 2 3 4 5 6; do
    apt-get update "${patient[@]}" && break
    [[ $try != 6 ]] || return
    sleep 10
  done
  apt-get install "${patient[@]}" -y --no-install-recommends "$@"
}

# Packages of servers start them when they are installed; only their programs are wanted. A policy that says
# "forbidden by policy" is Debian's way to ask for that. One that is already there is the machine's, and stays.
# In a subshell, so that an interrupted installation takes it away too.
without_services() (
  policy=/usr/sbin/policy-rc.d
  if [[ ! -e $policy ]]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  "$@"
)
