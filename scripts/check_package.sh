#!/usr/bin/env bash
# Installs the Debian packages in a bare Debian 12 root, plans and trains there, removes them and looks for what is left:
# check_package.sh. Needs root, for chroot, and Debian's mirror. Exit code 77 where it cannot run.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=build/packages
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

skip() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "only root may make a Debian root"
command -v debootstrap >/dev/null || skip "debootstrap is not installed (scripts/setup.sh check)"

work=$(mktemp -d)
root=$work/root
trap 'rm -rf --one-file-system "$work"' EXIT
debootstrap --variant=minbase bookworm "$root" "$mirror" >"$work/log" 2>&1 || { tail -n 20 "$work/log"; skip "no Debian root could be made"; }

# In the root, with no word of the caller's environment.
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root OMP_WAIT_POLICY=passive chroot "$root" "$@"; }
snug_files() { (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./tmp -o -path ./var/log \) -prune -o -iname '*snug*' -print | sort); }

mount -t proc proc "$root/proc" || skip "no /proc can be mounted in the root"
trap 'umount "$root/proc"; rm -rf --one-file-system "$work"' EXIT
cp "$packages"/snug_*.deb "$root/tmp/snug.deb"
cp -r demo "$root/tmp/"
python3 demo/make_corpus.py task --rows 200 --seed 1 >"$root/tmp/train.jsonl"
inside apt-get install -qq --no-install-recommends /tmp/snug.deb >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; }
echo "installed: $(inside dpkg-query -W -f '${Package} ${Version}, ${Installed-Size} KiB' snug)"

inside snug --version
inside snug plan /tmp/demo/model --seq 128 --memory 64MiB >"$work/plan"
head -n 1 "$work/plan"
inside snug train /tmp/demo/model --data /tmp/train.jsonl --seq 128 --batch 4 --max-steps 20 --memory 64MiB --output-dir /tmp/out 2>/dev/null | tail -n 2
[ -s "$root/tmp/out/adapter_model.safetensors" ] || { echo "no adapter was trained"; exit 1; }
inside bash -c 'source /usr/share/bash-completion/completions/snug; COMP_WORDS=(snug pla); COMP_CWORD=1; _snug; [ "${COMPREPLY[*]}" = plan ]'
inside sh -c 'zcat /usr/share/man/man1/snug.1.gz | grep -q "^.TH SNUG"'
inside dpkg --verify snug

inside apt-get purge -qq snug >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; }
left=$(snug_files)
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
echo "planned, trained and removed without a trace in a bare Debian $(cat "$root/etc/debian_version")"
